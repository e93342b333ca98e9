"""Rows of the compiler's table: the figures that its modules recompute, the legality table, and how
fast the cache simulator is.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from table import Row

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.misses import cache_misses
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import definition_of
from kernelwright.search.figures.halide import halide
from kernelwright.search.figures.polyhedral import polyhedral
from kernelwright.search.figures.te_schedules import te_schedules
from kernelwright.search.figures.time_tiling import time_tiling

ROOT = Path(__file__).resolve().parents[2]
TABLE = "tests/env/compiler/test_legality_table.py"
RATE = 50e6
LEVEL = Cache(32 * 1024, 8, 64)
# A name, the problem, its options, and a schedule.
STREAMS: tuple[tuple[str, str, dict[str, int], str], ...] = (
    ("matmul i j k", "matmul", {"m": 256, "n": 256, "k": 256}, ""),
    ("i k j", "matmul", {"m": 256, "n": 256, "k": 256}, "reorder('i', 'p', 'j')"),
    ("j k i", "matmul", {"m": 256, "n": 256, "k": 256}, "reorder('j', 'p', 'i')"),
    (
        "tiled",
        "matmul",
        {"m": 256, "n": 256, "k": 256},
        "tile('i', 'j', 32, 32)\nreorder('io', 'jo', 'p', 'ii', 'ji')",
    ),
    ("transpose", "transpose", {"rows": 2048, "cols": 2048}, ""),
    ("blur", "blur", {"h": 1024, "w": 1024}, ""),
    ("jacobi2d", "jacobi2d", {"h": 512, "w": 512, "t": 8}, ""),
    ("softmax", "softmax", {"rows": 512, "cols": 2048}, ""),
    ("spmv (gathers)", "spmv", {"rows": 1 << 12, "cols": 1 << 18, "nnz": 1 << 20}, ""),
    ("histogram", "histogram", {"n": 1 << 22, "bins": 4096}, ""),
)


def figures() -> Iterator[Row]:
    """FIGURES.md C, D, F and H4, section by section."""
    for section in (polyhedral, time_tiling, halide, te_schedules):
        found = section()
        wrong = [f"{figure.id}: {figure.got}" for figure in found if not figure.ok]
        names = ", ".join(figure.id for figure in found)
        yield (
            f"figures {names}",
            "every row ok",
            f"{len(found) - len(wrong)} of {len(found)}" + "".join(f"; {w}" for w in wrong),
            not wrong,
        )


def legality() -> Iterator[Row]:
    """Jacobi and Gauss-Seidel: legal and illegal maps, and the schedules that isl finds."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-n0", TABLE]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    counts = re.search(r"(\d+) passed", ran.stdout)
    passed = counts is not None and ran.returncode == 0
    shown = ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else ran.stderr[-200:]
    yield (
        "legality table (Jacobi, Gauss-Seidel; maps and isl's schedules)",
        "exactly",
        shown,
        passed,
    )


def cache_speed() -> Iterator[Row]:
    """Accesses a second of one level, over the address streams of whole nests."""
    rates = {}
    for name, problem_name, options, trace in STREAMS:
        problem = resolve(PROBLEMS, problem_name)(**options)
        workload = problem.workloads[0]
        procedure = definition_of(problem, workload)
        arrays = problem.inputs(workload, np.random.default_rng(0))
        best = 0.0
        # The first run compiles.
        for _ in range(3):
            start = time.process_time()
            report = cache_misses(
                procedure,
                parse_trace(trace),
                caches=(LEVEL,),
                extents=workload.fixed,
                inputs=arrays,
            )
            best = max(best, report.first.total.accesses / (time.process_time() - start))
        rates[name] = best
    shown = ", ".join(f"{name} {rate / 1e6:.0f}" for name, rate in rates.items())
    yield (
        "cache simulator, 32 KiB 8-way, million accesses a CPU second, over whole nests",
        f">= {RATE / 1e6:.0f}",
        shown,
        min(rates.values()) >= RATE,
    )


GROUPS = {"figures": figures, "legality": legality, "cache": cache_speed}
