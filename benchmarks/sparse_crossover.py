"""When a sparse kernel pays: the density from which a dense one is as fast, measured and predicted.

    python benchmarks/sparse_crossover.py [--only trap|structured|crossover|sizes]…

Float64, int32 indices, one thread, processor time of this thread, arms in turns, medians. The dense
arm is NumPy on OpenBLAS (matrix products, or sums and products of whole arrays), whose own choice
of kernel is left alone. Measured crossovers are read off between densities, both axes logarithmic.
Predictions (`env/compiler/machine/density.py`) run neither kernel: of this machine they know its
roofline, what lines of memory cost by working set, the step of a merge and two matrix products of
other shapes, all measured by other programs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent / "common")
# A kernel chosen by hand is slower than OpenBLAS's own choice, and idle threads compete.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sparse_kernels import (
    aligned_copy,
    build_cache,
    compiled,
    csr_matrix,
    kernel,
)
from sparse_schedules import (
    AHEAD_LONG,
    MTTKRP_FACTORED,
    SDDMM_LANES,
    SPMM_ROWS,
    SPMV_LANES,
)
from table import Row, print_groups

from kernelwright.env.compiler.machine.cpu import CpuMachine, load_machine
from kernelwright.env.compiler.machine.density import (
    MOST_DENSITY,
    DenseWork,
    LibraryCosts,
    crossover,
    sparse_estimate,
)
from kernelwright.env.compiler.machine.memory import MemoryCosts
from kernelwright.env.compiler.pipeline import lower as scheduled
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lengths import expected_counts, segments
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.program import Program
from kernelwright.env.compiler.sparse.storage import from_dense
from kernelwright.evaluators.machine.facts import machine_facts
from kernelwright.evaluators.machine.mountain import as_cpu, memory_costs

Array = NDArray[np.float64]
ITEM = 8
SDDMM = SDDMM_LANES.format(ahead=AHEAD_LONG)
ROUNDS, ROUND_S = 5, 0.01
WITHIN = 1.5
STRUCTURED_SUM = """
cache_write("y", "i", "register")
unroll("ji")
"""


def normal(*shape: int, seed: int = 3) -> Array:
    """Random numbers from a multiple of 64 bytes on."""
    return aligned_copy(np.random.default_rng(seed).standard_normal(shape))


def race(arms: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds a call of each: the medians of interleaved rounds."""
    repeats = {}
    for name, run in arms.items():
        run()
        began = time.thread_time()
        run()
        repeats[name] = max(1, min(1000, int(ROUND_S / max(time.thread_time() - began, 1e-7))))
    times: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(ROUNDS):
        names = list(arms)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.thread_time_ns()
            for _ in range(repeats[name]):
                arms[name]()
            times[name].append((time.thread_time_ns() - began) * 1e-9 / repeats[name])
    return {name: statistics.median(taken) for name, taken in times.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel: its program and schedule, by density; its dense alternative, by what it does; and
    both ready to be called on the same numbers, with a check of ours.
    """

    name: str
    densities: tuple[float, ...]
    program: Callable[[float], Program]
    trace: str
    dense: DenseWork
    arms: Callable[[float], tuple[Callable[[], Any], Callable[[], Any]]]


def spmv(n: int, densities: tuple[float, ...], trace: str = SPMV_LANES) -> Case:
    """Y = A x, and a matrix-vector product."""
    x, y = normal(n), normal(n)

    def made(density: float) -> Program:
        stored = n * max(1, round(n * density))
        return program(
            "y(i) = A(i,j) * x(j)", {"A": "csr"}, sizes={"i": n, "j": n}, counts={"A2": stored}
        )

    def arms(density: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
        matrix = csr_matrix(n, n, density)
        full = aligned_copy(matrix.toarray())
        call = compiled(lower(made(density)), trace).call(A=matrix, x=x)
        close(call()["y"], matrix @ x)
        return call.run, lambda: np.dot(full, x, out=y)

    size = n * n * ITEM
    work = DenseWork(flops=2 * n * n, moved_bytes=size, working_set=size)
    name = f"SpMV {n}²" if trace else f"SpMV {n}², plain loop"
    return Case(name, densities, made, trace, work, arms)


def spmm(n: int, width: int, densities: tuple[float, ...]) -> Case:
    """C = A B, and a matrix product."""
    b, c = normal(n, width), normal(n, width)

    def made(density: float) -> Program:
        stored = n * max(1, round(n * density))
        sizes = {"i": n, "k": n, "j": width}
        return program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr"}, sizes=sizes, counts={"A2": stored})

    def arms(density: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
        matrix = csr_matrix(n, n, density)
        full = aligned_copy(matrix.toarray())
        call = compiled(lower(made(density)), SPMM_ROWS).call(A=matrix, B=b)
        close(call()["C"], matrix @ b)
        return call.run, lambda: np.matmul(full, b, out=c)

    name = f"SpMM {n}² by {n}x{width}"
    return Case(name, densities, made, SPMM_ROWS, product(n, width, n), arms)


def sddmm(n: int, width: int, densities: tuple[float, ...]) -> Case:
    """C = A * (X Yᵀ) where A is stored; and all of the product, times A."""
    x, y = normal(n, width), normal(n, width, seed=4)

    def made(density: float) -> Program:
        return program(
            "C(i,j) = A(i,j) * X(i,k) * Y(j,k)",
            {"A": "csr"},
            sizes={"i": n, "j": n, "k": width},
            counts={"A2": n * max(1, round(n * density))},
            structure="A",
        )

    def arms(density: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
        matrix = csr_matrix(n, n, density)
        full, out = aligned_copy(matrix.toarray()), normal(n, n)
        call = compiled(lower(made(density)), SDDMM).call(A=matrix, X=x, Y=y)
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        close(call()["C_vals"], matrix.data * (x @ y.T)[rows, matrix.indices])
        return call.run, lambda: np.multiply(np.matmul(x, y.T, out=out), full, out=out)

    size = n * n * ITEM
    first = product(n, n, width)
    # The product is written, then read with A.
    work = replace(first, moved_bytes=first.moved_bytes + 2 * size, working_set=2 * size)
    return Case(f"SDDMM {n}², K = {width}", densities, made, SDDMM, work, arms)


def spadd(n: int, densities: tuple[float, ...]) -> Case:
    """C = A + B with its assembly in arrays that hold both; and a sum of arrays."""

    def made(density: float) -> Program:
        stored = n * max(1, round(n * density))
        formats = dict.fromkeys("ABC", "csr")
        counts = {"A2": stored, "B2": stored, "C2": 2 * stored}
        return program("C(i,j) = A(i,j) + B(i,j)", formats, sizes={"i": n, "j": n}, counts=counts)

    def arms(density: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
        a, b = csr_matrix(n, n, density, seed=1), csr_matrix(n, n, density, seed=2)
        one, other, out = aligned_copy(a.toarray()), aligned_copy(b.toarray()), normal(n, n)
        call = compiled(lower(made(density)), "").call(A=a, B=b)
        expected = (a + b).tocsr()
        expected.sort_indices()
        close(call()["C_vals"][: expected.nnz], expected.data)
        return call.run, lambda: np.add(one, other, out=out)

    size = 3 * n * n * ITEM
    work = DenseWork(flops=n * n, moved_bytes=size, working_set=size)
    return Case(f"SpAdd {n}² to CSR", densities, made, "", work, arms)


def mttkrp(n: int, rank: int, densities: tuple[float, ...]) -> Case:
    """M = T (C, D) from a tree; and a matrix product with the factors' Khatri-Rao product, which is
    the faster of the two dense forms.
    """
    c, d, out = normal(n, rank), normal(n, rank, seed=4), normal(n, rank)
    form = parse_format("csf", 3)

    def of(counts: Mapping[str, int]) -> Program:
        return program(
            "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)",
            {"T": form},
            sizes={"i": n, "j": n, "k": n, "r": rank},
            counts=counts,
        )

    def made(density: float) -> Program:
        counts = expected_counts(form, (n, n, n), density)
        return of({f"T{level}": count for level, count in counts.items()})

    def arms(density: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
        rng = np.random.default_rng(5)
        chosen = rng.random((n, n, n)) < density
        full = aligned_copy(np.where(chosen, rng.standard_normal((n, n, n)), 0.0))
        tensor = from_dense(form, full)
        own = tensor.arguments("T")
        counts = {f"T{level}": own[f"T{level}_crd"].size for level in (1, 2, 3)}
        call = compiled(lower(of(counts)), MTTKRP_FACTORED).call(T=tensor, C=c, D=d)
        flat = full.reshape(n, n * n)

        def dense() -> None:
            np.matmul(flat, (c[:, None, :] * d[None, :, :]).reshape(n * n, rank), out=out)

        dense()
        close(call()["M"], out)
        return call.run, dense

    work = product(n, rank, n * n)
    # The Khatri-Rao product is written before it is packed.
    work = replace(work, moved_bytes=work.moved_bytes + n * n * rank * ITEM)
    return Case(f"MTTKRP {n}³, R = {rank}, CSF", densities, made, MTTKRP_FACTORED, work, arms)


def product(m: int, n: int, k: int) -> DenseWork:
    """A matrix product: both operands are packed, and all three matrices pass once."""
    size = (m * k + k * n + m * n) * ITEM
    return DenseWork(
        product_flops=2.0 * m * n * k,
        packed=m * k + k * n,
        moved_bytes=size,
        working_set=size,
    )


def close(found: Array, expected: Array) -> None:
    """Stop where a result is not the expected one."""
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@dataclass(frozen=True, slots=True)
class Here:
    """What predictions know of this machine."""

    cpu: CpuMachine
    memory: MemoryCosts
    library: LibraryCosts


@cache
def here() -> Here:
    """Measured once, by nothing that is in the table."""
    cpu = as_cpu(machine_facts(), load_machine("cpu-lecture"))
    memory = memory_costs(find_toolchain(), build_cache())
    m = 1024
    square, skinny = _product_s(m, m, m), _product_s(m // 2, m // 16, m // 2)
    rate = 2 * m**3 / square
    packed = m * m // 4 + m * m // 32
    extra = skinny - 2 * (m // 2) ** 2 * (m // 16) / rate
    return Here(cpu, memory, LibraryCosts(rate, max(extra / packed, 1e-11)))


def _product_s(m: int, n: int, k: int) -> float:
    a, b, c = normal(m, k), normal(k, n), normal(m, n)
    return race({"product": lambda: np.matmul(a, b, out=c)})["product"]


def predicted(case: Case) -> float:
    """The density at which the model has both equally fast."""
    known = here()

    def sparse_s(density: float) -> float:
        made = case.program(density)
        procedure = scheduled(lower(made), parse_trace(case.trace)).procedure
        return sparse_estimate(procedure, known.cpu, known.memory, segments(made)).time_s

    return crossover(sparse_s, case.dense.time_s(known.cpu, known.memory, known.library))


def measured(case: Case) -> tuple[float, list[tuple[float, float, float]]]:
    """The density at which both are equally fast, and density, our time and the dense one's."""
    points = []
    for density in case.densities:
        ours, dense = case.arms(density)
        found = race({"ours": ours, "dense": dense})
        points.append((density, found["ours"], found["dense"]))
        if found["ours"] > found["dense"]:
            break
    return between(points), points


def between(points: Sequence[tuple[float, float, float]]) -> float:
    """Where the ratio of two times is 1, its logarithm being straight in that of density; the last
    density where ours is faster at all of them.
    """
    ratios = [(math.log(d), math.log(ours / dense)) for d, ours, dense in points]
    for (x0, y0), (x1, y1) in pairwise(ratios):
        if y0 <= 0 < y1:
            return math.exp(x0 - y0 * (x1 - x0) / (y1 - y0))
    return points[-1][0] if ratios[-1][1] <= 0 else points[0][0]


def compared(case: Case) -> tuple[str, bool]:
    """A row's text, and whether both agree."""
    expected = predicted(case)
    found, points = measured(case)
    below = [p for p in points if p[1] <= p[2]]
    said = _said(found, above=len(below) == len(points))
    at, ours, dense = min(points, key=lambda p: abs(math.log(p[0] / found)))
    text = (
        f"{said} measured, {_said(expected, above=expected >= MOST_DENSITY)} predicted; "
        f"at {at:g}: {1e3 * ours:.1f} against {1e3 * dense:.1f} ms"
    )
    factor = max(found / expected, expected / found)
    return text, factor <= WITHIN


def _said(density: float, *, above: bool) -> str:
    return f"over {density:g}" if above else f"{density:.2g}"


def crossovers() -> Iterator[Row]:
    """The table's kernels."""
    high = (0.3, 0.5, 0.7, 1.0)
    for case in (
        spmv(4096, high),
        spmm(4096, 64, high),
        sddmm(4096, 64, high),
        spadd(4096, (0.06, 0.15, 0.3, 0.5)),
        mttkrp(256, 32, high),
    ):
        text, agrees = compared(case)
        what = f"{case.name}: density at which dense is as fast"
        yield what, f"predicted within {WITHIN:g}x", text, agrees


def sizes() -> Iterator[Row]:
    """Other sizes, as information."""
    some = (0.2, 0.5, 0.75, 1.0)
    for case in (
        spmv(4096, some, trace=""),
        spmv(1024, some),
        spmm(4096, 16, some),
        spmm(1024, 64, some),
        sddmm(1024, 64, some),
        spadd(1024, (0.06, 0.12, 0.25, 0.5)),
        mttkrp(128, 32, some),
    ):
        text, agrees = compared(case)
        off = "" if agrees else f" (not within {WITHIN:g}x)"
        yield f"{case.name}: density at which dense is as fast", "-", text + off, None


def trap() -> Iterator[Row]:
    """SpMV against a dense loop that adds up in order, which no compiler may vectorise."""
    n = 4096
    case = spmv(n, (0.5, 0.8, 1.0))
    x = normal(n)
    plain = lower(program("y(i) = A(i,j) * x(j)", {}, sizes={"i": n, "j": n}))
    points, last = [], 0.0
    for density in case.densities:
        full = normal(n, n)
        ours, _ = case.arms(density)
        found = race({"ours": ours, "dense": compiled(plain, "").call(A=full, x=x).run})
        points.append((density, found["ours"], found["dense"]))
        last = found["dense"]
    y = normal(n)
    good = race({"dense": lambda: np.dot(full, x, out=y)})["dense"]
    above = all(ours <= dense for _, ours, dense in points)
    text = (
        f"{_said(between(points), above=above)} measured: the loop takes {1e3 * last:.1f} ms, "
        f"OpenBLAS {1e3 * good:.1f} ms"
    )
    yield f"SpMV {n}², against a dense loop that is not vectorised", "-", text, None


def structured() -> Iterator[Row]:
    """Two of every four, in the format that has half of the values and a byte for each place."""
    n, width = 4096, 64
    rng = np.random.default_rng(6)
    order = np.argsort(rng.random((n, n // 4, 4)), axis=2) < 2
    full = aligned_copy(np.where(order.reshape(n, n), rng.standard_normal((n, n)), 0.0))
    tensor = from_dense(parse_format("nm(2,4)"), full)
    x, y = normal(n), normal(n)
    made = kernel("y(i) = A(i,j) * x(j)", {"A": tensor}, {"i": n, "j": n}, STRUCTURED_SUM)
    call = made.call(A=tensor, x=x)
    close(call()["y"], full @ x)
    found = race({"ours": call.run, "dense": lambda: np.dot(full, x, out=y)})
    moved = sum(a.nbytes for a in tensor.arguments("A").values()) / full.nbytes
    text = f"{_times(found)}, {moved:.2f} of the bytes: x is read element by element"
    yield f"2:4, nm(2,4), SpMV {n}²", "-", text, None
    b, c = normal(n, width), normal(n, width)
    sizes = {"i": n, "k": n, "j": width}
    made = kernel("C(i,j) = A(i,k) * B(k,j)", {"A": tensor}, sizes, SPMM_ROWS)
    call = made.call(A=tensor, B=b)
    close(call()["C"], full @ b)
    found = race({"ours": call.run, "dense": lambda: np.matmul(full, b, out=c)})
    text = f"{_times(found)}, half of the operations: a row of B is read for each value"
    yield f"2:4, nm(2,4), SpMM {n}² by {n}x{width}", "-", text, None


def _times(found: Mapping[str, float]) -> str:
    ours, dense = found["ours"], found["dense"]
    return f"{dense / ours:.2f}x dense ({1e3 * ours:.1f} against {1e3 * dense:.1f} ms)"


GROUPS = {"crossover": crossovers, "trap": trap, "structured": structured, "sizes": sizes}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
