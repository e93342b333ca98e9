"""The table of the judge: what fools it, what it wrongly refuses, what it costs.

    python benchmarks/judge.py [--only GROUP]…

Groups: zoo, mutants, contamination, limits, floor, wall, secrets.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from table import Row, print_groups
from threadpoolctl import threadpool_limits

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import Kernel
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import arguments, program
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Verdict,
    knob_candidate,
)
from kernelwright.evaluators.cpu.floor import measured_floor
from kernelwright.evaluators.cpu.placement import at_work, placement
from kernelwright.evaluators.cpu.policy import Checking, Judging, Profile
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program

# A register tile that runs near the peak: the shorter the calls, the more the judge weighs.
TUNED = {"mr": 6, "nv": 2, "lanes": 16, "kc": 256, "outer": "columns"}
ROUNDS, PAIRS = 5, 8


def one(judge: Cpu, candidate: Candidate, against: Candidate, pairs: int = PAIRS) -> Verdict:
    request = Request(
        candidate, Stage.SCREEN, (Reference(Role.BASELINE, against),), pairs=pairs
    )
    (verdict,) = judge.evaluate([request])
    return verdict


class Naive:
    """A judge in one process: fresh inputs for every pair, both kernels called here and timed by
    this process, the first output compared with the library's by ``allclose``.
    """

    def __init__(self, problem: Problem, candidate: Candidate) -> None:
        self.problem, workload = problem, problem.workloads[0]
        made = program(problem, candidate, workload)
        text = f"#include <stdint.h>\n{made.text}"
        build = BuildCache(cache_folder()).build(text, find_toolchain(), DEFAULT_FLAGS)
        given = arguments(problem)
        self._extents = workload.fixed
        self.kernel = Kernel(build.library, made.entry, given, tuple(self._extents))
        ffi = self.kernel._ffi
        self._pointer = lambda array: ffi.cast("float *", array.ctypes.data)

    def judge(self, pairs: int) -> None:
        rng = np.random.default_rng()
        m, n, k = self._extents.values()
        for number in range(pairs):
            inputs = self.problem.inputs(self.problem.workloads[0], rng)
            a, b = inputs["A"], inputs["B"]
            out = np.empty((m, n), np.float32)
            for _ in range(2):
                began = time.perf_counter_ns()
                self.kernel._function(*map(self._pointer, (a, b, out)), m, n, k)
                time.perf_counter_ns() - began
            if number == 0 and not np.allclose(out, a @ b, 1e-2, 1e-2):
                raise AssertionError("the naive judge's own kernel is wrong")


def wall() -> Iterator[Row]:
    for size, most in ((512, 3.0), (2048, 2.0)):
        problem = matmul(m=size, n=size, k=size)
        tuned = knob_candidate(TUNED)
        naive = Naive(problem, tuned)
        for check in Checking:
            judge = Cpu(problem, judging=Judging(check=check))
            one(judge, tuned, tuned)
            ratios = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                verdict = one(judge, tuned, tuned)
                ours = time.perf_counter() - began
                assert verdict.status.passed, verdict
                with threadpool_limits(1):
                    began = time.perf_counter()
                    naive.judge(PAIRS)
                    ratios.append(ours / (time.perf_counter() - began))
                gc.collect()
            found = statistics.median(ratios)
            low, high = min(ratios), max(ratios)
            what = f"wall time over a naive judge, {size}³, check {check}, {PAIRS} pairs"
            shown = f"{found:.2f}x ({low:.2f} to {high:.2f}, {ROUNDS} rounds)"
            yield what, f"at most {most:g}x", shown, found <= most


def floor() -> Iterator[Row]:
    where = placement(1)
    with at_work(where):
        found = [measured_floor(where, 1) for _ in range(20)]
    bracket = statistics.median(f.call_ns for f in found)
    start = statistics.median(f.start_ns for f in found[1:]) / 1e6
    slowest = max(f.start_ns for f in found[1:]) / 1e6
    shown = f"{bracket / 1e3:.2f} us"
    yield "bracket floor, spin to spin, p50", "at most 0.3 us", shown, bracket <= 300
    shown = f"{start:.1f} ms (slowest {slowest:.1f})"
    yield "worker start, isolated and loaded", "at most 50 ms", shown, start <= 50


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {"floor": floor, "wall": wall}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__ or "")
