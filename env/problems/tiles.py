"""Sketches: schedules with holes that knobs fill."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.env.types import Directive, Scalar


def register_tile(
    row: str, column: str, around: tuple[str, ...], knobs: Mapping[str, Scalar]
) -> tuple[Directive, ...]:
    """``mr`` rows of ``nv`` vectors of ``lanes`` elements, written out inside the loops ``around``.

    The row's blocks are the loop ``{row}o``, the column's ``{column}o``; ``around`` names them
    among the others, outermost first. Where a size does not divide, the tail is guarded.
    """
    mr, nv, lanes = (_size(knobs[name]) for name in ("mr", "nv", "lanes"))
    return (
        Directive("split", row, (mr,)),
        Directive("split", column, (nv * lanes,)),
        Directive("split", f"{column}i", (lanes, f"{column}u", f"{column}v")),
        Directive("reorder", around[0], (*around[1:], f"{row}i", f"{column}u", f"{column}v")),
        Directive("unroll", f"{row}i"),
        Directive("unroll", f"{column}u"),
        Directive("vectorize", f"{column}v"),
    )


def _size(value: Scalar) -> int:
    """A knob's value as it is, if it is a whole number: it may remember the decision that it is."""
    return value if isinstance(value, int) else int(value)
