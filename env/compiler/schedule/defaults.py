"""The names that new loops get where a directive gives none.

The usual one is the first in a fixed list that C leaves free: ``io`` and ``ii`` for the halves of
``i``, but ``d_o`` for the outer half of ``d``. Where a procedure has that name already, the next in
the list follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

from kernelwright.env.compiler.ir.names import is_free


def split_names(loop: str) -> tuple[str, str]:
    """The usual names of a loop's outer and inner half."""
    return spare_half(loop, "o"), spare_half(loop, "i")


def fused_name(loop: str, inner: str) -> str:
    """The usual name of two loops that became one."""
    return spare_fused(loop, inner)


def spare_half(loop: str, end: str, taken: Collection[str] = ()) -> str:
    """The first name of a half of a loop that is not taken."""
    return _spare(taken, f"{loop}{end}", f"{loop}_{end}")


def spare_fused(loop: str, inner: str, taken: Collection[str] = ()) -> str:
    """The first name of two loops that became one that is not taken."""
    return _spare(taken, f"{loop}_{inner}")


def copied_name(name: str, ending: str, taken: Collection[str] = ()) -> str:
    """The first name of a copy of a loop or temporary that is not taken: ``i_tail``,
    ``i_tail2`` and so on.
    """
    copies = (f"{name}_{ending}{number if number > 1 else ''}" for number in count(1))
    return next(copy for copy in copies if is_free(copy) and copy not in taken)


def _spare(taken: Collection[str], *wanted: str) -> str:
    return next(name for name in _names(*wanted) if is_free(name) and name not in taken)


def _names(*wanted: str) -> Iterator[str]:
    """The wanted names, then others without end; those that begin so are never C's own."""
    yield from wanted
    yield f"loop_{wanted[-1]}"
    for number in count(2):
        yield f"loop_{wanted[-1]}{number}"
