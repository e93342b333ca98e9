"""What the harness itself takes: the time from bell to done around a kernel that does nothing, and
the time that a worker needs to wake up.

A short kernel's time has the floor in it. Nothing is subtracted: it is reported, and kernels of few
floors are timed in batches.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import numpy as np

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.types import Arrays, ErrorModel, Problem, TensorSpec, Workload
from kernelwright.evaluators.cpu.isolation import Parts
from kernelwright.evaluators.cpu.memory import Arena, anonymous_file
from kernelwright.evaluators.cpu.native import program
from kernelwright.evaluators.cpu.placement import Placement
from kernelwright.evaluators.cpu.worker import Program, Worker

CALLS, SKIPPED = 200, 20
_EMPTY = "void kw_call(void *const *p, const long *e) { (void)p; (void)e; }\n"
_WORKLOAD = Workload((("n", 16),))


@dataclass(frozen=True, slots=True)
class Floor:
    """The harness's own times in ns: of a call of nothing (median and 99th percentile), the gap
    between wake-up and bell (median), and of starting a worker; with the parts of the isolation
    that were in force.
    """

    call_ns: float
    call_p99_ns: float
    gap_ns: float
    start_ns: float
    blocking: bool
    parts: Parts


def measured_floor(where: Placement, threads: int) -> Floor:
    """Measure it, with a kernel that returns at once.

    Raises:
        BuildError: if there is no compiler.
        WorkerError: if the worker does not work.
    """
    build = BuildCache(cache_folder()).build(_EMPTY, find_toolchain(), ("-O2",))
    library = anonymous_file("kernel", build.library.read_bytes())
    runs = Program(str(program("worker.c")), (), library)
    rng = np.random.default_rng()
    none = (np.empty(0, np.uint64), np.empty(0, np.int64))
    with Arena(_problem(), _WORKLOAD, 1, rng) as arena:
        began = time.perf_counter_ns()
        with Worker(
            runs, arena, {}, threads=threads, where=where, limit_s=10.0, insist=False
        ) as worker:
            start_ns = time.perf_counter_ns() - began
            calls = [worker.call(0, 1, 10.0, none) for _ in range(SKIPPED + CALLS)][SKIPPED:]
    times = sorted(call.time_ns for call in calls)
    return Floor(
        statistics.median(times),
        times[99 * CALLS // 100],
        statistics.median(call.gap_ns for call in calls),
        float(start_ns),
        where.blocking,
        worker.parts,
    )


def _problem() -> Problem:
    """One output that nobody writes."""

    def nothing(arrays: Arrays) -> Arrays:
        return arrays

    return Problem(
        name="floor",
        version=1,
        tensors=(TensorSpec("y", ("n",), "float32", "output"),),
        workloads=(_WORKLOAD,),
        error_model=ErrorModel(0.0, "nothing is computed"),
        reference=nothing,
        inputs=lambda workload, rng: {},
        flops=lambda workload: 0,
        moved_bytes=lambda workload: 0,
        spaces=("source",),
    )
