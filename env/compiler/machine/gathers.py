"""Rows at places that are read from memory: which accesses find theirs so, and how many lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelwright.env.compiler.ir.queries import has_loads, variables_of
from kernelwright.env.compiler.machine.affine import interval, is_cursor, steps_along, terms_of
from kernelwright.env.compiler.machine.nest import Access, Nest


def gathering_depth(access: Access, nest: Nest) -> int | None:
    """Inside how many of its loops an access finds its row at a place that was read; None if it
    only walks along.
    """
    depth = None
    for index in access.indices:
        for part in terms_of(index):
            if not has_loads(part) or steps_along(part, nest.ordered):
                continue
            names = variables_of(part)
            inside = [n for n, var in enumerate(access.loops, start=1) if var in names]
            here = len(access.loops) if is_cursor(part) else max(inside, default=0)
            depth = max(depth or 0, here)
    return depth


def gathered_lines(accesses: Sequence[Access], nest: Nest, line_bytes: int) -> float:
    """Lines of the rows that accesses to one array find, as often as they find them; what several
    find at the same place counts once.
    """
    found: dict[object, float] = {}
    for access in accesses:
        depth = gathering_depth(access, nest)
        if depth is None:
            continue
        rows = math.prod(nest.trips[var] for var in access.loops[:depth]) * access.share
        lines = rows * _row_lines(access, nest, depth, line_bytes)
        key = (access.indices, access.loops[:depth])
        found[key] = max(found.get(key, 0.0), lines)
    return sum(found.values())


def _row_lines(access: Access, nest: Nest, depth: int, line_bytes: int) -> float:
    """Lines of a row: what the loops inside walk along."""
    inner = {var: nest.trips[var] for var in access.loops[depth:]}
    reach, pitch = 0.0, float(access.array.itemsize)
    for index, size in zip(reversed(access.indices), reversed(access.array.shape), strict=True):
        for part in terms_of(index):
            bounds = None if has_loads(part) else interval(part, inner)
            if bounds is not None:
                reach += (bounds[1] - bounds[0]) * pitch
        pitch *= size
    return math.ceil((reach + access.array.itemsize) / line_bytes)
