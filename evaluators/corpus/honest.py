"""Honest kernels: correct C as people and models write it, all of which a judge must pass.

``HONEST`` is read from ``honest/*.c`` when it is first asked for. Those tagged ``reassociated`` add
in another order than the plain loops; those tagged ``static_scratch`` or ``lazy_table`` keep memory
between calls that no result depends on; ``openmp`` ones use threads.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.evaluators.corpus.specimen import Specimen, read_all

HONEST: tuple[Specimen, ...]


@cache
def _honest() -> tuple[Specimen, ...]:
    return read_all(Path(__file__).parent / "honest")


def __getattr__(name: str) -> Any:
    if name == "HONEST":
        return _honest()
    raise AttributeError(f"module {__name__} has no attribute {name!r}")
