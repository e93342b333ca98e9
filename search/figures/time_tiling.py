"""Figures C2 and C3: cache misses of Jacobi sweeps in time order and in skewed tiles."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine.hierarchy import Cache, Counts
from kernelwright.env.compiler.misses import cache_misses
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.search.figures.table import Figure, exact

STEPS, POINTS = 200, 2000
CACHE = Cache(4 * 1024, 4, 64)
# The tile for which both figures come out, at 2, 4 and 8 KB and any associativity.
TILES = "tile('t', 'i', 50, 50)"
# Doubles in a line: of so many new points one misses.
FRESH = 1 / 8


def jacobi(steps: int, points: int, *, skewed: bool) -> Procedure:
    """All rows of a one-dimensional Jacobi iteration but the first, the mean of three neighbours in
    the row before; skewed, ``i`` stands for the place plus ``t``.
    """
    t, i = Var("t"), Var("i")
    place: Expr = Binary("sub", i, t) if skewed else i

    def before(shift: int) -> Expr:
        return Load("u", (Binary("sub", t, whole(1)), Binary("add", place, whole(shift))))

    total = Binary("add", Binary("add", before(-1), before(0)), before(1))
    store = Store("u", (t, place), Binary("div", total, Const(3.0, "float64")))
    inside = Binary("and", Binary("ge", place, whole(1)), Binary("le", place, whole(points - 2)))
    guarded = If(Binary("and", Binary("ge", t, whole(1)), inside), store)
    row = For("i", whole(points + steps if skewed else points), guarded)
    rows = Tensor("u", (whole(steps + 1), whole(points)), "float64", "output")
    return Procedure("jacobi", (), (rows,), For("t", whole(steps + 1), row))


def misses(trace: str = "", *, skewed: bool) -> Counts:
    """What the cache sees of an order."""
    procedure = jacobi(STEPS, POINTS, skewed=skewed)
    return cache_misses(procedure, parse_trace(trace), caches=[CACHE]).first.total


def time_tiling() -> list[Figure]:
    """Figures C2 and C3."""
    computed = STEPS * (POINTS - 2)
    plain, tiled = misses(skewed=False), misses(TILES, skewed=True)
    rates = [counts.misses / computed for counts in (plain, tiled)]
    title = "Jacobi's misses a point, in time order and in skewed tiles"
    both = f"{rates[0]:.3f} -> {rates[1]:.3f}"
    part = f"{rates[0] - FRESH:.3f} -> {rates[1] - FRESH:.3f}"
    return [
        exact("C2", title, "0.250 -> 0.151", both),
        exact("C3", "of these, beyond the lines that are new", "0.125 -> 0.026", part),
    ]
