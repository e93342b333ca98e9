"""The table of the CPU's models: how fast caches are simulated, and how well and how fast the
analytic model ranks schedules beside measured times.

    python benchmarks/cpu_model.py [--only GROUP]…

Groups: simulator, ranking, cost. One thread. Measured times are the least of several rounds of the
compiled C, all schedules of a problem in each round.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import cffi
import numpy as np
from table import Row, print_groups

from kernelwright.env.compiler.codegen.c import arguments, generate
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine.cpu import estimate, load_machine
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.machine.simulator import simulate
from kernelwright.env.compiler.misses import cache_misses
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import aligned, prototype
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.problems.blur import blur
from kernelwright.env.problems.jacobi1d import jacobi1d
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import definition_of
from kernelwright.env.problems.transpose import transpose
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Problem
from kernelwright.search.models.ranks import spearman

MACHINE = load_machine("cpu-lecture")
SCHEDULES, ROUNDS, ROUND_S = 40, 5, 0.02
LEVELS = (
    Cache(32 * 1024, 8, 64),
    Cache(1 << 20, 8, 64),
    Cache.fully_associative(32 << 20, 64),
)
ORDERS = {
    "ijk": "",
    "ikj": "reorder('i', 'p', 'j')",
    "jki": "reorder('j', 'p', 'i')",
    "tiles of 32": "tile('i', 'j', 32, 32)\nsplit('p', 32)\n"
    "reorder('io', 'jo', 'po', 'pi', 'ii', 'ji')",
}


def simulator() -> Iterator[Row]:
    rng, count = np.random.default_rng(0), 20_000_000
    streams = {
        "neighbours": np.arange(count, dtype=np.int64) * 4,
        "random in 16 KiB": rng.integers(0, 1 << 14, count),
        "random in 64 KiB": rng.integers(0, 1 << 16, count),
    }
    for what, addresses in streams.items():
        rates = [_rate(partial(simulate, c, addresses)) for c in (LEVELS[:1], LEVELS)]
        text = f"{rates[0] * count / 1e6:.0f}, {rates[1] * count / 1e6:.0f}"
        yield f"{what}: million accesses/s, one level and three", "-", text, None
    procedure = definition_of(problem := matmul(m=256, n=256, k=256), problem.workloads[0])
    extents = problem.workloads[0].fixed
    for name, text in ORDERS.items():
        trace, rates = parse_trace(text), []
        for caches in (LEVELS[:1], LEVELS):
            run = partial(cache_misses, procedure, trace, caches=caches, extents=extents)
            rates.append(_rate(run) * run().first.total.accesses / 1e6)
        what = f"matmul 256^3, {name}: million accesses/s, one level and three"
        yield what, "at least 50", ", ".join(f"{r:.0f}" for r in rates), min(rates) >= 50


def _rate(run: Callable[[], object]) -> float:
    """Runs a second of processor time, the best of three; what is built is there already."""
    run()
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        run()
        best = max(best, 1 / (time.process_time() - began))
    return best


@cache
def _schedules() -> dict[str, tuple[list[Procedure], dict[str, int]]]:
    """Procedures after schedules drawn from their problems' spaces, and their extents."""
    problems: list[Problem] = [
        matmul(m=256, n=256, k=256),
        matmul(m=512, n=512, k=512),
        blur(h=1024, w=1024),
        jacobi1d(n=1 << 16, t=16),
        transpose(rows=1024, cols=1024),
    ]
    out = {}
    for problem in problems:
        workload, rng = problem.workloads[0], np.random.default_rng(2026)
        procedure = definition_of(problem, workload)
        space, found = ScheduleSpace(procedure), {}
        found[()] = lower(procedure).procedure
        while len(found) < SCHEDULES:
            trace = space.sample(rng).payload
            try:
                found[trace] = lower(procedure, trace).procedure
            except CompilerError:
                continue
        out[f"{problem.name} {workload.label}"] = list(found.values()), dict(workload.fixed)
    out["gauss-seidel 512x512, rows jammed"] = (
        [seidel(512, rows) for rows in (1, 2, 3, 4, 6, 8)],
        {},
    )
    return out


def seidel(n: int, rows: int) -> Procedure:
    """Sweeps of a five-point Gauss-Seidel iteration in doubles: skewed, and ``rows`` rows abreast,
    each a column behind the one before, so that their chains are independent.
    """
    j, block, r = Var("j"), Var("block"), Var("r")
    row: Expr = Binary("add", Binary("mul", block, whole(rows)), r)
    column: Expr = Binary("add", Binary("sub", j, r), whole(rows))

    def at(down: int, right: int) -> tuple[Expr, Expr]:
        below = Binary("add", row, whole(1 + down))
        return below, Binary("add", column, whole(right))

    total: Expr = Load("u", at(0, -1))
    for place in (at(0, 1), at(0, 0), at(-1, 0), at(1, 0)):
        total = Binary("add", total, Load("u", place))
    store = Store("u", at(0, 0), Binary("mul", total, Const(0.2, "float64")))
    jam = For("r", whole(rows), store, LoopKind.UNROLLED)
    inner = For("block", whole(n // rows), For("j", whole(n), jam))
    start = Store("u", (Var("a"), Var("b")), Load("start", (Var("a"), Var("b"))))
    shape = (whole(n + 2), whole(n + 2 * rows + 1))
    begin = For("a", shape[0], For("b", shape[1], start))
    tensors = (Tensor("start", shape, "float64", "input"), Tensor("u", shape, "float64", "output"))
    return Procedure("seidel", (), tensors, Block((begin, For("sweep", whole(10), inner))))


def ranking() -> Iterator[Row]:
    for what, (procedures, extents) in _schedules().items():
        measured = measure(procedures, extents)
        modelled = [estimate(p, MACHINE).time_s for p in procedures]
        rank = spearman(np.array(measured), np.array(modelled))
        best = min(measured)
        chosen = measured[int(np.argmin(modelled))]
        off = np.array(modelled) / np.array(measured)
        spread = statistics.stdev(np.log2(off).tolist())
        text = f"{rank:.2f}; {chosen / best:.2f}x; {spread:.2f} doublings"
        title = (
            f"{what}, {len(procedures)} schedules: rank correlation; the model's choice over the"
        )
        yield f"{title} best; spread of modelled over measured", "-", text, None


def measure(procedures: Sequence[Procedure], extents: dict[str, int]) -> list[float]:
    """Seconds of each procedure's C."""
    calls = [_call(procedure, extents) for procedure in procedures]
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for number, call in enumerate(calls):
            began, count = time.thread_time(), 0
            while time.thread_time() - began < ROUND_S:
                started = time.thread_time()
                call()
                best[number] = min(best[number], time.thread_time() - started)
                count += 1
    return best


def _call(procedure: Procedure, extents: dict[str, int]) -> Callable[[], None]:
    build = BuildCache(cache_folder()).build(generate(procedure), find_toolchain(), DEFAULT_FLAGS)
    ffi, known, rng = cffi.FFI(), arguments(procedure), np.random.default_rng(0)
    ffi.cdef(f"{prototype(procedure.name, known, procedure.extents)};")
    library = ffi.dlopen(str(build.library))
    function = getattr(library, procedure.name)
    arrays = []
    for argument in known:
        shape = tuple(extents[e] if isinstance(e, str) else e for e in argument.shape)
        array = aligned(shape, argument.dtype)
        array[...] = rng.random(shape)
        arrays.append(array)
    pointers = [ffi.cast(f"{_c_type(a.dtype)} *", a.ctypes.data) for a in arrays]
    values = [extents[name] for name in procedure.extents]

    # What the pointers lead to lives as long as the function.
    def call(_kept: object = (library, arrays)) -> None:
        function(*pointers, *values)

    return call


def _c_type(dtype: np.dtype[np.generic]) -> str:
    return {"float32": "float", "float64": "double"}[dtype.name]


def cost() -> Iterator[Row]:
    """The median of a problem's schedules, each estimated anew."""
    for what, (procedures, _) in _schedules().items():
        seconds = []
        for procedure in procedures:
            began = time.thread_time()
            estimate(procedure, MACHINE)
            seconds.append(time.thread_time() - began)
        text = f"{1e3 * statistics.median(seconds):.2f} ms, {1e3 * max(seconds):.2f} ms at most"
        yield f"an estimate, {what}", "-", text, None


GROUPS = {"simulator": simulator, "ranking": ranking, "cost": cost}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
