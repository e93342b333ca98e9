"""Section F: orders of a 64 x 64 matrix multiplication in front of a small cache, each order a
schedule of the tensor front end's procedure, its misses simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from math import prod

import numpy as np

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import Const, Procedure, loops
from kernelwright.env.compiler.machine.hierarchy import Cache, Counts
from kernelwright.env.compiler.misses import cache_misses
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.schedule.edit import parts
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.types import Directive
from kernelwright.search.figures.table import Figure, exact

SIZE, BLOCK, DEPTH = 64, 16, 4
CACHE = Cache(8 * 1024, 4, 64)
SPLITS = f"tile('i', 'j', {BLOCK}, {BLOCK})\nsplit('k', {DEPTH})\n"
ORDERS = {
    "ijk": "",
    "ikj": "reorder('i', 'k', 'j')",
    "tiled": f"{SPLITS}reorder('io', 'jo', 'ko', 'ki', 'ii', 'ji')",
    # The order inside a block in which the lecture compares layouts.
    "blocked": f"{SPLITS}reorder('io', 'jo', 'ko', 'ii', 'ki', 'ji')",
}
# Multiplications and additions each rounded, as NumPy's scalars do it.
FLAGS = ("-O2", "-ffp-contract=off")


def multiplication(n: int, dtype: str = "float32", block: int | None = None) -> Procedure:
    """C = A B; with ``block`` B is stored packed, ``[j / block][k][j % block]``."""
    a = te.placeholder("A", (n, n), dtype)
    shape = (n, n) if block is None else (n // block, n, block)
    b, k = te.placeholder("B", shape, dtype), te.reduce_axis("k", n)

    def term(i: te.Value, j: te.Value) -> te.Reduction:
        other = b[k.value, j] if block is None else b[j // block, k.value, j % block]
        return te.reduce_sum(a[i, k.value] * other, k)

    return te.lower("matmul", [te.compute("C", (n, n), term, [a, b])])


def update(procedure: Procedure) -> Procedure:
    """The nest that adds up, without the one that sets C to zero."""
    return parts(procedure)[-1]


def misses(n: int, order: str, block: int | None = None) -> Counts:
    """What the cache sees of an order, the matrices one behind the other from address 0."""
    procedure = update(multiplication(n, block=block))
    bases, end = {}, 0
    for tensor in procedure.tensors:
        bases[tensor.name] = end
        shape = (int(size.value) for size in tensor.shape if isinstance(size, Const))
        end += prod(shape) * ITEM_BYTES[tensor.dtype]
    trace = parse_trace(ORDERS[order])
    return cache_misses(procedure, trace, caches=[CACHE], bases=bases).first.total


def te_schedules() -> list[Figure]:
    """Figures F1 to F8."""
    return [*_orders(), *_packing(), *_schedules(), _agreement()]


def _orders() -> Iterator[Figure]:
    ijk, wider, ikj, tiled = (
        misses(n, order) for n, order in ((64, "ijk"), (65, "ijk"), (64, "ikj"), (64, "tiled"))
    )

    def both(counts: Counts) -> str:
        return f"{counts.misses:,}; {counts.associative:,} fully associative"

    yield exact("F1", "misses in order i, j, k", "266,760; 16,896 fully associative", both(ijk))
    title = "the same, width 65"
    yield exact("F2", title, "17,814; 17,814 fully associative", both(wider))
    title = "misses in order i, k, j"
    yield exact("F3", title, "16,896; 16,896 fully associative", both(ikj))
    factor = f"{ikj.misses / tiled.misses:.2f}x fewer"
    title = "misses in tiles of 16 x 16 x 4"
    yield exact("F4", title, "3,820 (4.42x fewer)", f"{tiled.misses:,} ({factor})")


def _packing() -> Iterator[Figure]:
    plain, packed = misses(SIZE, "blocked"), misses(SIZE, "blocked", BLOCK)
    got = f"{plain.conflict:,} -> {packed.conflict:,} ({plain.misses:,} -> {packed.misses:,})"
    title = "conflict misses (all) in blocks, B packed or not"
    yield exact("F5", title, "1,204 -> 20 (3,508 -> 2,324)", got)
    yield exact("F6", "least misses", "768", f"{plain.compulsory:,}")


def _schedules() -> Iterator[Figure]:
    counts = [schedule_count(n) for n in (SIZE, 1024)]
    title = f"schedules of one split a loop, {SIZE} and 1024"
    yield exact("F7", title, "246,960; 958,320", f"{counts[0]:,}; {counts[1]:,}")


def schedule_count(n: int) -> int:
    """How many schedules split each loop of the update once without a rest, and order the halves in
    any way (sums regrouped at will).
    """
    nest = update(multiplication(n))
    names = [loop.var for loop in loops(nest)]
    splits = [sum(_is_perfect(nest, name, factor) for factor in range(1, n + 1)) for name in names]
    halves = loops(apply_trace(nest, [Directive("split", name, (1,)) for name in names]))
    return prod(splits) * sum(1 for _ in permutations(halves))


def _is_perfect(nest: Procedure, loop: str, factor: int) -> bool:
    try:
        apply(nest, Directive("split", loop, (factor, "", "", "perfect")))
    except ScheduleError:
        return False
    return True


def _agreement() -> Figure:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE)) for _ in range(2))
    procedure, cache = multiplication(SIZE, "float64"), BuildCache(cache_folder())
    furthest = 0.0
    for order in ORDERS.values():
        kernel = compile_procedure(procedure, parse_trace(order), cache=cache, flags=FLAGS)
        furthest = max(furthest, float(np.abs(kernel({"A": a, "B": b})["C"] - a @ b).max()))
    return exact("F8", "furthest from NumPy in any order", "8.9e-15", f"{furthest:.1e}")
