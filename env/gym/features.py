"""What a policy sees of a loop nest: numbers a loop, and numbers of the whole, none of them a
model's opinion of its speed.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import (
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    loops,
    statements,
)
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.whiles import written_as_loops
from kernelwright.env.compiler.machine.affine import flat
from kernelwright.env.compiler.machine.counting import arithmetic
from kernelwright.env.compiler.machine.cpu import LOADED_TRIPS
from kernelwright.env.compiler.machine.nest import Access, Nest, read_nest

LOOP_FEATURES = (
    "present",
    "log2_extent",
    *(kind.value for kind in LoopKind),
    "depth",
    "log2_entries",  # how often the loop is entered
    "innermost",
    "carries_sum",  # a reduction inside adds up over this loop
    "guarded",  # a guard lies directly inside
    "stores",
    "steps_0",  # accesses inside that stay, move by one, and move by more with this loop
    "steps_1",
    "steps_more",
)
FACTS = (
    "log2_flops",
    "log2_iterations",
    "log2_bytes",
    "statements",
    "loops",
    "depth",
    "log2_lanes",
    "log2_copies",
    "log2_parallel",
    "directives",
)
# Above every feature: extents are below 2^31, and products of a few of them below this power.
GREATEST = 256.0


def loop_table(procedure: Procedure, rows: int) -> NDArray[np.float32]:
    """One row a loop in program order, padded with zeros; loops beyond ``rows`` are left away."""
    nest = read_nest(written_as_loops(procedure), LOADED_TRIPS)
    inside = _accesses_inside(nest)
    depths = _entries(nest)
    out = np.zeros((rows, len(LOOP_FEATURES)), dtype=np.float32)
    for row, loop in enumerate(loops(procedure)[:rows]):
        around = depths.get(loop.var, ())
        entries = math.prod(nest.trips[var] for var in around)
        stores = [s for s in statements(loop.body) if isinstance(s, Store)]
        steps = _steps(inside[loop.var], loop.var)
        values = [
            1.0,
            _log2(nest.trips[loop.var]),
            *(float(loop.kind is kind) for kind in LoopKind),
            len(around),
            _log2(entries),
            not any(isinstance(s, For) for s in statements(loop.body)),
            any(_adds_up(store, loop.var) for store in stores),
            isinstance(loop.body, If),
            len(stores),
            *steps,
        ]
        out[row] = np.clip(np.array(values, dtype=np.float32), 0.0, GREATEST)
    return out


def facts(procedure: Procedure, directives: int) -> NDArray[np.float32]:
    """The numbers of the whole nest, and how long its trace is."""
    nest = read_nest(written_as_loops(procedure), LOADED_TRIPS)
    found = loops(procedure)
    stores = list(_placed(procedure.body, ()))
    runs = [math.prod(nest.trips[var] for var in around) for _, around in stores]
    operations = [
        run * (len(list(arithmetic(store.value))) + (store.reduce is not None))
        for run, (store, _) in zip(runs, stores, strict=True)
    ]
    kinds = {loop.var: loop.kind for loop in found}

    def most(kind: LoopKind) -> float:
        products = [
            math.prod(nest.trips[var] for var in around if kinds[var] is kind)
            for _, around in stores
        ]
        return _log2(max(products, default=1.0))

    values = [
        _log2(sum(operations)),
        _log2(sum(runs)),
        _log2(sum(array.size_bytes for array in nest.arrays.values())),
        len(stores),
        len(found),
        max((len(around) for _, around in stores), default=0),
        most(LoopKind.VECTORIZED),
        most(LoopKind.UNROLLED),
        most(LoopKind.PARALLEL),
        directives,
    ]
    return np.clip(np.array(values, dtype=np.float32), 0.0, GREATEST)


def _log2(value: float) -> float:
    return math.log2(value) if value > 1 else 0.0


def _placed(node: Stmt, around: tuple[str, ...]) -> list[tuple[Store, tuple[str, ...]]]:
    """Every store with the loops around it."""
    if isinstance(node, Store):
        return [(node, around)]
    if isinstance(node, For):
        return _placed(node.body, (*around, node.var))
    return [found for child in below(node) for found in _placed(child, around)]


def _accesses_inside(nest: Nest) -> dict[str, list[Access]]:
    out: dict[str, list[Access]] = defaultdict(list)
    for access in nest.accesses:
        for var in access.loops:
            out[var].append(access)
    return out


def _entries(nest: Nest) -> dict[str, tuple[str, ...]]:
    """The loops around each loop."""
    out: dict[str, tuple[str, ...]] = {}
    for access in nest.accesses:
        for depth, var in enumerate(access.loops):
            out[var] = access.loops[:depth]
    return out


def _steps(accesses: list[Access], var: str) -> tuple[int, int, int]:
    """How many accesses stay, move by one element, and move by more with a loop."""
    counts = [0, 0, 0]
    for access in accesses:
        offset = flat(access.indices, access.array.shape)
        step = 2 if offset is None else abs(offset.factor(var))
        counts[min(step, 2)] += 1
    return counts[0], counts[1], counts[2]


def _adds_up(store: Store, var: str) -> bool:
    names = frozenset({var})
    return store.reduce is not None and not any(mentions(i, *names) for i in store.indices)
