"""One point of a set as numbers, and an iteration in words."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl


def coordinates(point: isl.Point) -> tuple[int, ...]:
    """The coordinates of a point; of a pair, first those of its start."""
    count = point.get_space().dim(isl.dim_type.set)
    return tuple([point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(count)])


def iteration_text(iteration: Iterable[tuple[str, int]]) -> str:
    """An iteration by its loops: ``(i=0, k=3)``."""
    return "(" + ", ".join(f"{name}={value}" for name, value in iteration) + ")"
