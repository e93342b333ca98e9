"""Programs that cheat, by class: the test suite of a judge.

Every module of this package with a constant ``EXPLOIT`` is a class of the catalogue; there is no
table to keep.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from importlib import import_module

from kernelwright.evaluators.zoo.exploit import Exploit

# a01_stale_output: the family and number of the class, then a few words.
_CLASS = re.compile(r"[a-e]\d\d_\w+")


@cache
def exploits() -> tuple[Exploit, ...]:
    """Every class that is here, in the catalogue's order.

    Raises:
        ValueError: if two modules claim one class, or one is named otherwise than its class.
    """
    found: dict[str, Exploit] = {}
    for module in pkgutil.iter_modules(__path__):
        if not _CLASS.fullmatch(module.name):
            continue
        exploit: Exploit = import_module(f"{__name__}.{module.name}").EXPLOIT
        wanted = f"{module.name[0].upper()}{int(module.name[1:3])}"
        if exploit.id != wanted or exploit.id in found:
            raise ValueError(f"zoo/{module.name}.py: expected class {wanted}, found {exploit.id}")
        found[exploit.id] = exploit
    return tuple(sorted(found.values(), key=lambda exploit: exploit.order))
