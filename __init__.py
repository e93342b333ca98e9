"""kernelwright: search for fast kernels with machines, and believe the result.

The package is the repository root; its rooms are ``env`` (the world), ``evaluators`` (the judges),
``search`` (drivers and the campaign loop), ``agents`` and ``prompts`` (proposers that talk),
``configs`` (campaign files and the one place where names become objects). Nothing is imported until
it is asked for, so ``import kernelwright`` is free.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.configs.api import run as run
    from kernelwright.configs.autotune import autotune as autotune
    from kernelwright.configs.loaded import load as load

__version__ = "0.1.0"
__all__ = ["__version__", "autotune", "load", "run"]

_LAZY = {
    "autotune": "kernelwright.configs.autotune",
    "load": "kernelwright.configs.loaded",
    "run": "kernelwright.configs.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module 'kernelwright' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    """The public names, those that are imported when first used among them."""
    return sorted(__all__)


# Gymnasium's convention is that importing a package makes its ids known. It is honoured only where
# Gymnasium is there already, so that importing kernelwright alone stays free.
if "gymnasium.envs.registration" in sys.modules:
    import_module("kernelwright.env.gym.registration").register_ids()
