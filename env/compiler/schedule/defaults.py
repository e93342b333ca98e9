"""The names that new loops get where a directive gives none.

The usual one is the first in a fixed list that C leaves free: ``io`` and ``ii`` for the halves of
``i``, but ``d_o`` for the outer half of ``d``. Where a procedure has that name already, the next in
the list follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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


def spare_first(loop: str, taken: Collection[str]) -> str:
    """The first name that is not taken of a loop that runs in front of others for what the first
    iteration needs.
    """
    return _spare(taken, f"{loop}_first")


def spare_fused(loop: str, inner: str, taken: Collection[str] = ()) -> str:
    """The first name of two loops that became one that is not taken."""
    return _spare(taken, f"{loop}_{inner}")


def row_names(
    loops: Sequence[str], rows: Sequence[Sequence[int]], taken: Collection[str]
) -> tuple[str, ...]:
    """The names of the loops of an affine map: row by row the loops that it is made of, joined, or
    the next name where that is taken.
    """
    names: list[str] = []
    for row in rows:
        used = [loop for loop, entry in zip(loops, row, strict=True) if entry]
        names.append(_spare({*taken, *names}, "_".join(used) or "step"))
    return tuple(names)


def spare_name(wanted: str, taken: Collection[str]) -> str:
    """The wanted name, or the next one that is not taken."""
    return _spare(taken, wanted)


def copied_name(name: str, ending: str, taken: Collection[str]) -> str:
    """The first name of a copy of a loop or temporary that is not taken: ``i_tail``,
    ``i_tail2`` and so on.
    """
    return numbered_name(f"{name}_{ending}", taken)


def numbered_name(usual: str, taken: Collection[str]) -> str:
    """The usual name, with the first number behind it that makes it free if it is taken."""
    names = (f"{usual}{number if number > 1 else ''}" for number in count(1))
    return next(name for name in names if is_free(name) and name not in taken)


def _spare(taken: Collection[str], *wanted: str) -> str:
    return next(name for name in _names(*wanted) if is_free(name) and name not in taken)


def _names(*wanted: str) -> Iterator[str]:
    """The wanted names, then others without end; those that begin so are never C's own."""
    yield from wanted
    yield f"loop_{wanted[-1]}"
    for number in count(2):
        yield f"loop_{wanted[-1]}{number}"
