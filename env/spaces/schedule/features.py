"""Numbers about scheduled loops for a model to learn from, as many for every schedule of a
procedure: what surrounds each store (after the features of Ansor's cost model, Zheng et al. 2020,
appendix B, cut down to what a linear model can use), and how much code it is.

Sizes count by their logarithms, so that ratios add.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.unrolled import written
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    While,
    walk,
)
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.spaces.schedule.nest import strides

LEVELS = 3  # of the innermost serial loops, whose footprints are told
REGISTERS = 28
REGISTER_BYTES = 64


@dataclass(frozen=True, slots=True)
class _Site:
    """A store with the loops around it, outermost first, and the number of guards."""

    store: Store
    loops: tuple[For, ...]
    guards: int
    tensors: dict[str, Tensor]


def features_of(procedure: Procedure, stores: int) -> NDArray[np.float64]:
    """The features of a scheduled procedure, `PER_STORE` for each of its first ``stores`` stores;
    what a store has not got is 0.
    """
    found = _sites(procedure)
    rows = [_store_features(site) for site in found[:stores]]
    rows += [[0.0] * PER_STORE] * (stores - len(rows))
    size = math.log2(1 + written(procedure.body))
    return np.array([value for row in rows for value in row] + [size], dtype=np.float64)


def _sites(procedure: Procedure) -> list[_Site]:
    found: list[_Site] = []

    def visit(node: Stmt, around: tuple[For, ...], guards: int, known: dict[str, Tensor]) -> None:
        match node:
            case Store():
                found.append(_Site(node, around, guards, known))
            case For(_, _, body, _):
                visit(body, (*around, node), guards, known)
            case If(_, then) | While(_, then):
                visit(then, around, guards + 1, known)
            case Block(items):
                for item in items:
                    visit(item, around, guards, known)
            case Allocate(tensor, body):
                visit(body, around, guards, {**known, tensor.name: tensor})
            case Call(_, body):
                visit(body, around, guards, known)

    visit(procedure.body, (), 0, {tensor.name: tensor for tensor in procedure.tensors})
    return found


def _store_features(site: _Site) -> list[float]:
    store = site.store
    extents = [_log2(loop) for loop in site.loops]
    names = [loop.var for loop in site.loops]
    accesses = _accesses(site)
    steps = [strides(site.tensors[name], indices, names) for name, indices in accesses]

    def total(kind: LoopKind, *, spatial: bool | None = None) -> float:
        """The product of the extents of one kind."""
        return sum(
            extent
            for extent, loop, step in zip(extents, site.loops, steps[0], strict=True)
            if loop.kind is kind and spatial in (None, step != 0)
        )

    serial = [i for i, loop in enumerate(site.loops) if loop.kind is LoopKind.SERIAL]
    lanes = total(LoopKind.VECTORIZED)
    copied = total(LoopKind.UNROLLED, spatial=True)
    itemsize = ITEM_BYTES[site.tensors[store.tensor].dtype]
    registers = 2**copied * max(1.0, 2**lanes * itemsize / REGISTER_BYTES)
    # Accumulators stay in registers if the loop around the tile does not move the store.
    stays = bool(serial) and steps[0][serial[-1]] == 0
    dense = [_step_in_lanes(s, site) for s in steps]
    out = [
        sum(extents),
        lanes,
        lanes**2,
        total(LoopKind.PARALLEL),
        copied,
        total(LoopKind.UNROLLED, spatial=False),
        math.log2(1 + min(registers, REGISTERS)),
        math.log2(1 + max(0.0, registers - REGISTERS)),
        float(stays),
        lanes * stays,
        math.log2(1 + min(registers, REGISTERS)) * stays,
        extents[serial[-1]] if serial else 0.0,
        float(site.guards),
        float(store.reduce is not None),
        float(len(accesses)),
        *(float(sum(kind == wanted for kind in dense)) for wanted in ("still", "dense", "far")),
    ]
    for level in range(LEVELS):
        # What the loops from here inward touch.
        start = serial[-1 - level] if level < len(serial) else 0
        touched = _footprint(site, steps, start)
        out += [math.log2(1 + touched), sum(extents[start:]) - math.log2(1 + touched)]
    return out


def _log2(loop: For) -> float:
    return math.log2(constant_extent(loop) or 1)


def _accesses(site: _Site) -> list[tuple[str, tuple[Expr, ...]]]:
    """The store first, then the loads of its value, each once."""
    loads = [node for node in walk(site.store.value) if isinstance(node, Load)]
    pairs = [(site.store.tensor, site.store.indices), *((n.tensor, n.indices) for n in loads)]
    return list(dict.fromkeys(pairs))


def _step_in_lanes(steps: Sequence[int | None], site: _Site) -> str:
    """How an access moves with the vectorized loop: still, dense or far."""
    along = [
        step
        for step, loop in zip(steps, site.loops, strict=True)
        if loop.kind is LoopKind.VECTORIZED
    ]
    if not along:
        return "none"
    return {0: "still", 1: "dense"}.get(-1 if along[-1] is None else along[-1], "far")


def _footprint(site: _Site, steps: Sequence[Sequence[int | None]], start: int) -> float:
    """Bytes that the loops from one inward touch, as if no two accesses met."""
    total = 0.0
    for (name, _), moves in zip(_accesses(site), steps, strict=True):
        elements = 1.0
        for loop, step in zip(site.loops[start:], moves[start:], strict=True):
            elements *= 1 if step == 0 else constant_extent(loop) or 1
        total += elements * ITEM_BYTES[site.tensors[name].dtype]
    return total


PER_STORE = 18 + 2 * LEVELS
