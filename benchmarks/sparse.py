"""The table of the sparse compiler: generated kernels against SciPy, plain C loops and one another.

Python benchmarks/sparse.py [--only figures|spmv|spmm|sddmm|spadd|mttkrp|formats]

Float64, int32 indices, one thread, CPU time; the same number of nonzeros in every row and random
sorted columns, as in published comparisons with TACO. Arms run in turns in every round; a ratio is
the median over rounds of the other arm's time by ours: above 1, ours is faster. Results are
compared first. Arrays of ours start at multiples of 64 bytes, SciPy's where NumPy put them.
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

import ctypes
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sparse_formats
from sparse_kernels import aligned_copy, csr_matrix, kernel
from sparse_schedules import (
    AHEAD_LONG,
    AHEAD_SHORT,
    MTTKRP_FACTORED,
    SDDMM_LANES,
    SPMM_ROWS,
    SPMV_LANES,
)
from table import Row, print_groups

from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import from_dense
from kernelwright.search.figures.table import all_figures

HAND = Path(__file__).parent / "sparse_loops.c"
DENSITIES = (0.001, 0.01, 0.05, 0.1, 0.2)
ROUNDS, ROUND_S = 9, 0.02
SHORT_ROW = 16


def ratios(arms: dict[str, Callable[[], Any]], ours: str) -> dict[str, float]:
    """The time of each other arm by that of ours: medians over rounds of ratios."""
    repeats = {}
    for name, run in arms.items():
        run()
        start = time.perf_counter()
        run()
        repeats[name] = max(1, min(1000, int(ROUND_S / max(time.perf_counter() - start, 1e-7))))
    times: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(ROUNDS):
        names = list(arms)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            run, count = arms[name], repeats[name]
            start = time.thread_time()
            for _ in range(count):
                run()
            times[name].append((time.thread_time() - start) / count)
    return {
        name: statistics.median(a / b for a, b in zip(taken, times[ours], strict=True))
        for name, taken in times.items()
        if name != ours
    }


def hand() -> ctypes.CDLL:
    """The plain C loops."""
    folder = tempfile.mkdtemp()
    library = Path(folder) / "loops.so"
    command = find_toolchain(None).command
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([*command, *flags, "-o", library, HAND], check=True)
    return ctypes.CDLL(str(library))


def pointers(*arrays: np.ndarray) -> list[ctypes.c_void_p]:
    """Arrays as C takes them."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Stop where a result is not the expected one."""
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def figures() -> Iterator[Row]:
    """The reference figures about sparse tensors."""
    wanted = ("G1", "G3", "G4", "H5")
    for figure in all_figures():
        if figure.id in wanted:
            yield f"figure {figure.id}", figure.accepted, figure.got, figure.ok


def spmv() -> Iterator[Row]:
    """Y = A x: the plain loop for short rows, else sums in eight lanes."""
    library = hand()
    cases = [(4096, d) for d in DENSITIES] + [(65536, d) for d in (0.0001, 0.001, 0.005)]
    for n, density in cases:
        matrix = csr_matrix(n, n, density)
        is_short = matrix.nnz / n < SHORT_ROW
        made = kernel(
            "y(i) = A(i,j) * x(j)", {"A": matrix}, {"i": n, "j": n}, "" if is_short else SPMV_LANES
        )
        x = np.random.default_rng(1).standard_normal(n)
        call = made.call(A=matrix, x=x)
        close(call()["y"], matrix @ x)
        stored = pointers(matrix.indices, matrix.data, call.outputs["y"])

        def stream(given: list[Any] = stored, count: int = matrix.nnz) -> None:
            library.stream(*given, ctypes.c_int64(count))

        arms = {"ours": call.run, "SciPy": lambda m=matrix, v=x: m @ v, "stream": stream}
        found = ratios(arms, "ours")
        target = 1.3 if density >= 0.05 else 1.0
        how = "plain loop" if is_short else "eight lanes"
        said = f"{found['SciPy']:.2f} (reading the matrix alone: {found['stream']:.2f} of ours)"
        name = f"SpMV {n}², d = {density:g}, {how}"
        yield name, f">= {target:.1f}x SciPy", said, found["SciPy"] >= target


def spmm() -> Iterator[Row]:
    """C = A B, B of 64 columns: the row of C in registers."""
    n, width = 4096, 64
    rng = np.random.default_rng(2)
    for density in DENSITIES:
        matrix = csr_matrix(n, n, density)
        b = aligned_copy(rng.standard_normal((n, width)))
        made = kernel(
            "C(i,j) = A(i,k) * B(k,j)", {"A": matrix}, {"i": n, "k": n, "j": width}, SPMM_ROWS
        )
        call = made.call(A=matrix, B=b)
        close(call()["C"], matrix @ b)
        found = ratios({"ours": call.run, "SciPy": lambda m=matrix, v=b: m @ v}, "ours")["SciPy"]
        yield f"SpMM 4096² by 4096x64, d = {density:g}", ">= 2x SciPy", f"{found:.2f}", found >= 2


def sddmm() -> Iterator[Row]:
    """C = A * (X Y^T) where A is stored: sums over k in lanes."""
    n, width = 4096, 64
    rng, library = np.random.default_rng(3), hand()
    for density in DENSITIES:
        matrix = csr_matrix(n, n, density)
        is_short = matrix.nnz / n < SHORT_ROW
        x, y = (aligned_copy(rng.standard_normal((n, width))) for _ in range(2))
        out = np.zeros(matrix.nnz)
        given = pointers(matrix.indptr, matrix.indices, matrix.data, x, y, out)

        def plain(given: list[Any] = given) -> None:
            library.sddmm(*given, ctypes.c_int64(n), ctypes.c_int64(width))

        made = kernel(
            "C(i,j) = A(i,j) * X(i,k) * Y(j,k)",
            {"A": matrix},
            {"i": n, "j": n, "k": width},
            SDDMM_LANES.format(ahead=AHEAD_SHORT if is_short else AHEAD_LONG),
            structure="A",
        )
        call = made.call(A=matrix, X=x, Y=y)
        plain()
        close(call()["C_vals"], out)
        found = ratios({"ours": call.run, "plain C": plain}, "ours")["plain C"]
        name = f"SDDMM 4096², K = 64, d = {density:g}"
        yield name, ">= 2.5x the plain C loop", f"{found:.2f}", found >= 2.5


def spadd() -> Iterator[Row]:
    """C = A + B with its assembly, the arrays of C new in every call as SciPy's are."""
    n = 4096
    for density in DENSITIES:
        a, b = csr_matrix(n, n, density, seed=1), csr_matrix(n, n, density, seed=2)
        made = kernel(
            "C(i,j) = A(i,j) + B(i,j)",
            {"A": a, "B": b, "C": None},
            {"i": n, "j": n},
            "",
            counts={"C2": a.nnz + b.nnz},
        )
        call = made.call(A=a, B=b)
        expected = (a + b).tocsr()
        expected.sort_indices()
        out = call()
        stored = int(out["C2_pos"][-1])
        assert stored == expected.nnz
        assert np.array_equal(out["C2_crd"][:stored], expected.indices)
        close(out["C_vals"][:stored], expected.data)
        found = ratios({"ours": call.fresh, "SciPy": lambda m=a, v=b: m + v}, "ours")["SciPy"]
        yield f"SpAdd 4096² to CSR, d = {density:g}", ">= 1.0x SciPy", f"{found:.2f}", found >= 1


def mttkrp() -> Iterator[Row]:
    """M = T (C, D): the sum over k in registers, multiplied once by the row of C."""
    n, rank = 256, 32
    library, form = hand(), parse_format("csf", 3)
    for density in DENSITIES:
        rng = np.random.default_rng(4)
        dense = np.where(rng.random((n, n, n)) < density, rng.standard_normal((n, n, n)), 0.0)
        tensor = from_dense(form, dense)
        c, d = (aligned_copy(rng.standard_normal((n, rank))) for _ in range(2))
        out = np.zeros((n, rank))
        own = tensor.arguments("T")
        names = [f"T{level}_{array}" for level in (1, 2, 3) for array in ("pos", "crd")]
        given = pointers(*(own[name] for name in names), own["T_vals"], c, d, out)

        def plain(given: list[Any] = given) -> None:
            library.mttkrp(*given, ctypes.c_int64(n), ctypes.c_int64(rank))

        made = kernel(
            "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)",
            {"T": tensor},
            {"i": n, "j": n, "k": n, "r": rank},
            MTTKRP_FACTORED,
        )
        call = made.call(T=tensor, C=c, D=d)
        plain()
        close(call()["M"], out)
        found = ratios({"ours": call.run, "plain C": plain}, "ours")["plain C"]
        name = f"MTTKRP 256³, R = 32, CSF, d = {density:g}"
        yield name, ">= 1.8x the plain C loop", f"{found:.2f}", found >= 1.8


GROUPS = {
    "figures": figures,
    "spmv": spmv,
    "spmm": spmm,
    "sddmm": sddmm,
    "spadd": spadd,
    "mttkrp": mttkrp,
    "formats": lambda: sparse_formats.rows(ratios),
}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__ or "")
