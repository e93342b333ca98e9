"""Target ``cpu``: candidates compiled to C, run and timed beside a reference on this machine."""

from __future__ import annotations

import os
import platform
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.compiler.machine.device import Device
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, BuildError, find_toolchain
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import (
    REFERENCE_FAILED,
    Arm,
    CacheState,
    Candidate,
    Evidence,
    ExtentRange,
    Language,
    Measurement,
    Problem,
    ProcessPair,
    Reference,
    Request,
    Scalar,
    Stage,
    Status,
    Verdict,
    Workload,
)
from kernelwright.evaluators.cpu.bench import Bench, check_tensors
from kernelwright.evaluators.cpu.build import Builder, BuildFailureError, Loadable, loaded_name
from kernelwright.evaluators.cpu.worker import Worker, WorkerError
from kernelwright.evaluators.statistics import speedup

# Shapes drawn from a workload that declares ranges.
SHAPES = 3
START_LIMIT_S = 20.0
# What starting two workers takes, and one of them in Python, for estimates.
START_S, LIBRARY_START_S = 0.02, 0.4
# A candidate this much slower than its reference is stopped; and one this much slower is screened
# with a single pair.
HOPELESS, SLOW = 100.0, 3.0


class _ArmFailedError(Exception):
    """A worker of one arm failed."""

    def __init__(self, arm: Arm, verdict: Verdict) -> None:
        super().__init__(arm, verdict.code)
        self.arm, self.verdict = arm, verdict


class Cpu:
    """C on this machine, timed in pairs.

    A screen is one pair of processes, a confirmation ``process_pairs`` of them with swapped start
    order. Every call of the candidate is checked.

    Args:
        problem: what is computed.
        seed: not used: inputs and orders come from the system's own randomness.
        threads: how many threads a kernel and a library may use.
        flags: compiler flags in gcc's words, the same for candidate and baseline.
        toolchain: which compiler; the first that is there unless given.
        limit_s: the longest a call may take.
    """

    languages = frozenset(Language)
    deterministic = False
    evidence = Evidence.MEASURED
    constraints: tuple[Constraint, ...] = ()
    members_reason = ""
    device: Device | None = None
    files: Mapping[str, str] = MappingProxyType({})
    judge_keys: Mapping[str, tuple[str, ...] | None] = MappingProxyType(
        {
            "profile": ("basic",),
            "state": ("cold", "warm"),
            "screen.pairs": None,
            "confirm.process_pairs": None,
            "confirm.pairs": None,
        }
    )

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        threads: Annotated[
            int, Field(ge=1, le=1024, description="threads a kernel and a library may use")
        ] = 1,
        flags: Annotated[
            tuple[str, ...], Field(description="compiler flags in gcc's words")
        ] = DEFAULT_FLAGS,
        toolchain: Annotated[
            Literal["gcc", "clang", "zig"] | None,
            Field(description="the compiler; the first that is there unless given"),
        ] = None,
        limit_s: Annotated[
            float, Field(gt=0, le=3600, description="the longest that a call may take, in s")
        ] = 10.0,
    ) -> None:
        del seed
        self.problem, self._limit_s, self.threads = problem, limit_s, threads
        check_tensors(problem)
        self._rng = np.random.default_rng(secrets.randbits(256))
        self._benches: dict[tuple[str, int], Bench] = {}
        self._call_s: dict[str, float] = {}
        self._environment = _environment(threads)
        self.missing: tuple[str, ...] = ()
        self.fingerprint = _machine()
        try:
            found = find_toolchain(toolchain)
        except BuildError as error:
            wanted = toolchain or "gcc, clang or the Python package ziglang"
            self.missing = (f"a C compiler ({wanted}: {error})",)
            return
        found.translate(flags)
        openmp = ("-fopenmp",) if threads > 1 and "-fopenmp" not in flags else ()
        self.fingerprint = f"{self.fingerprint}; {found.version}; {' '.join(flags)}"
        cache_ = BuildCache(cache_folder())
        self._builder = Builder(problem, found, (*flags, *openmp), cache_)

    # What a target says of itself

    def members(self, problem: Problem) -> NDArray[np.int64] | None:
        """None: every configuration may be compiled."""
        del problem
        return None

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """The problem's own default configuration, the first of every knob where it names none."""
        first = tuple((knob.name, knob.values[0]) for knob in problem.knobs)
        return problem.unscheduled or first

    def baseline(self, space: Space) -> Candidate:
        """The unscheduled program: the definition without a schedule, or the plain loops in C."""
        del space
        return unscheduled_program(self.problem)

    @property
    def library(self) -> Candidate | None:
        """The library's kernel, where the problem names one that is installed."""
        library = self.problem.library
        if library is None or not _installed(library.needs):
            return None
        return Candidate(Language.LIBRARY, library.name)

    def floor_ns(self, workload: Workload) -> float:
        """0: the roofline of this machine is not known here."""
        del workload
        return 0.0

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """NaN: a clock never tells a true time."""
        return np.full(len(candidates), np.nan)

    def estimate_s(self, request: Request) -> float:
        """The wall time that a request will take, from the calls measured so far, in s."""
        total = 0.0
        for against in request.against:
            arms = (request.candidate, against.candidate)
            calls = sum(self._seconds(arm) for arm in arms)
            start = LIBRARY_START_S if against.candidate.language is Language.LIBRARY else START_S
            total += request.process_pairs * ((request.pairs + 1) * calls + start)
        return total * len(self.problem.workloads)

    def _seconds(self, candidate: Candidate) -> float:
        """The wall time of a checked call; of an unknown library the shortest that is known, of
        anything else that is unknown the longest.
        """
        known = self._call_s.values()
        guess = min if candidate.language is Language.LIBRARY else max
        return self._call_s.get(candidate.key, guess(known, default=0.01))

    def prepare(self, candidate: Candidate) -> None:
        """Build a candidate ahead of its judgement; a failure is kept for then."""
        for workload in self.problem.workloads:
            try:
                self._builder.build(candidate, workload)
            except BuildFailureError:
                return

    # Judging

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request, one after the other."""
        return [self._judge(request) for request in requests]

    def _judge(self, request: Request) -> Verdict:
        if self.missing:
            return Verdict(Status.BROKEN, "no_compiler", evidence=self.missing[0])
        measurements: list[Measurement] = []
        worst, log = 0.0, ""
        for workload in self.problem.workloads:
            try:
                candidate = self._builder.build(request.candidate, workload)
                log = log or candidate.log
                for against in request.against:
                    samples, error = self._measure(request, workload, candidate, against)
                    worst = max(worst, error)
                    measurements.append(
                        Measurement(
                            workload=workload.label,
                            role=against.role,
                            reference_key=against.candidate.key,
                            samples=samples,
                            clock="worker-monotonic",
                            cache_state=request.state,
                            evidence=Evidence.MEASURED,
                            machine=self.fingerprint,
                        )
                    )
            except BuildFailureError as failure:
                return _failed(failure)
            except _ArmFailedError as failure:
                return failure.verdict
        passed = Verdict(Status.OK, max_error=worst, measurements=tuple(measurements), log=log)
        if request.stage is not Stage.CONFIRM:
            return passed
        interval = speedup(passed)
        assert interval is not None
        return replace(passed, status=interval.claim)

    def _measure(
        self, request: Request, workload: Workload, candidate: Loadable, against: Reference
    ) -> tuple[tuple[ProcessPair, ...], float]:
        try:
            other = self._builder.build(against.candidate, workload)
        except BuildFailureError as failure:
            raise _ArmFailedError(Arm.REFERENCE, _broken(against, _failed(failure))) from None
        arms = {Arm.CANDIDATE: candidate, Arm.REFERENCE: other}
        keys = {Arm.CANDIDATE: request.candidate.key, Arm.REFERENCE: against.candidate.key}
        shapes = self._shapes(workload)
        # Every shape is checked; which one is timed goes round.
        for shape in range(shapes) if shapes > 1 else ():
            self._checked_once(self._bench(workload, shape), candidate)
        samples, worst = [], 0.0
        for number in range(request.process_pairs):
            bench = self._bench(workload, (request.trial + number) % shapes)
            if request.stage is Stage.CONFIRM:
                bench.move()
            try:
                pair, error = self._process_pair(bench, arms, keys, request, swap=number % 2 == 1)
            except _ArmFailedError as failure:
                if failure.arm is Arm.REFERENCE:
                    verdict = _broken(against, failure.verdict)
                    raise _ArmFailedError(Arm.REFERENCE, verdict) from None
                raise
            samples.append(pair)
            worst = max(worst, error)
        return tuple(samples), worst

    def _process_pair(
        self,
        bench: Bench,
        arms: Mapping[Arm, Loadable],
        keys: Mapping[Arm, str],
        request: Request,
        *,
        swap: bool,
    ) -> tuple[ProcessPair, float]:
        """Samples of two fresh processes, call by call in turns."""
        order = (Arm.REFERENCE, Arm.CANDIDATE) if swap else (Arm.CANDIDATE, Arm.REFERENCE)
        workers: dict[Arm, Worker] = {}
        samples: list[tuple[float, float]] = []
        worst, screening = 0.0, request.stage is Stage.SCREEN
        limit_s, state = self._limit_s, request.state
        try:
            for arm in order:
                workers[arm] = self._start(bench, arms[arm], arm)
            # A first call of each, untimed, pays for pages and lazy binding; the reference's says
            # how long is too long.
            for arm in (Arm.REFERENCE, Arm.CANDIDATE):
                time_ns, inputs = self._call(bench, workers[arm], arm, state, limit_s, first=True)
                worst = self._check(bench, inputs, arm)
                if arm is Arm.REFERENCE:
                    limit_s = min(limit_s, max(1.0, HOPELESS * time_ns / 1e9))
            for number in range(request.pairs):
                times = {}
                for arm in order if number % 2 == 0 else order[::-1]:
                    began = time.perf_counter()
                    times[arm], inputs = self._call(bench, workers[arm], arm, state, limit_s)
                    if arm is Arm.CANDIDATE:
                        worst = max(worst, self._check(bench, inputs, arm))
                    self._call_s[keys[arm]] = time.perf_counter() - began
                samples.append((times[Arm.CANDIDATE], times[Arm.REFERENCE]))
                if screening and times[Arm.CANDIDATE] > SLOW * times[Arm.REFERENCE]:
                    break
        finally:
            for worker in workers.values():
                worker.close()
        return ProcessPair(order[0], order, tuple(samples)), worst

    def _start(self, bench: Bench, loadable: Loadable, arm: Arm) -> Worker:
        name = loaded_name(loadable, self.problem, bench.extents)
        # A library for Python takes its time to import; what C does when it is loaded is its call.
        in_python = not loadable.library.endswith(".so")
        limit_s = START_LIMIT_S if in_python else self._limit_s
        try:
            return Worker(
                loadable.command, name, bench.arena, self._environment, self.threads, limit_s
            )
        except WorkerError as error:
            raise _ArmFailedError(arm, _verdict(error)) from None

    def _call(
        self,
        bench: Bench,
        worker: Worker,
        arm: Arm,
        state: CacheState,
        limit_s: float,
        *,
        first: bool = False,
    ) -> tuple[float, int]:
        """One call on poisoned outputs: its time in ns, and which inputs it had.

        The first call of a process has the last inputs, which are the whole numbers where there are
        any; the others have random ones.
        """
        count = len(bench.answers)
        number = count - 1 if first else int(self._rng.integers(count))
        place = int(self._rng.integers(len(bench.answers)))
        bench.arena.place(number, place)
        bench.arena.poison(int(self._rng.integers(1, 1 << 16)))
        try:
            return worker.call(place, state, limit_s), number
        except WorkerError as error:
            raise _ArmFailedError(arm, _verdict(error)) from None

    def _check(self, bench: Bench, number: int, arm: Arm) -> float:
        """The error of the outputs that the last call left."""
        fault, error = bench.answers[number].check(bench.arena)
        if fault is not None:
            verdict = Verdict(
                Status.WRONG, fault.code, evidence=fault.evidence, max_error=fault.error
            )
            raise _ArmFailedError(arm, verdict)
        return error

    def _checked_once(self, bench: Bench, loadable: Loadable) -> None:
        with self._start(bench, loadable, Arm.CANDIDATE) as worker:
            limit_s, state = self._limit_s, CacheState.WARM
            _, number = self._call(bench, worker, Arm.CANDIDATE, state, limit_s, first=True)
            self._check(bench, number, Arm.CANDIDATE)

    # Shapes

    def _shapes(self, workload: Workload) -> int:
        ranged = any(isinstance(extent, ExtentRange) for _, extent in workload.extents)
        return SHAPES if ranged else 1

    def _bench(self, workload: Workload, number: int) -> Bench:
        place = (workload.label, number)
        if place not in self._benches:
            self._benches[place] = Bench(self.problem, self._drawn(workload, number), self._rng)
        return self._benches[place]

    def _drawn(self, workload: Workload, number: int) -> Workload:
        """The workload with every range replaced by a number from it: the least, the greatest, and
        then odd ones, which no tile divides.
        """

        def drawn(extent: ExtentRange) -> int:
            if number < 2:
                return (extent.low, extent.high)[number]
            value = int(self._rng.integers(extent.low, extent.high + 1))
            return value if value % 2 or value == extent.high else value + 1

        return Workload(
            tuple(
                (name, drawn(extent) if isinstance(extent, ExtentRange) else extent)
                for name, extent in workload.extents
            )
        )


def unscheduled_program(problem: Problem) -> Candidate:
    """The candidate that speedups of a problem are measured against.

    Raises:
        ValueError: if the problem has neither a definition nor plain C.
    """
    ranged = any(isinstance(e, ExtentRange) for w in problem.workloads for _, e in w.extents)
    if problem.definition is not None and not ranged:
        return Candidate(Language.SCHEDULE, ())
    if problem.plain_c is None:
        raise ValueError(f"{problem.name}: expected a definition or plain C, found neither")
    return Candidate(Language.SOURCE, problem.plain_c)


def _failed(failure: BuildFailureError) -> Verdict:
    return Verdict(failure.status, failure.code, evidence=failure.evidence, log=failure.log)


def _verdict(error: WorkerError) -> Verdict:
    return Verdict(error.status, error.code, evidence=error.evidence)


def _broken(against: Reference, verdict: Verdict) -> Verdict:
    """The verdict on a candidate whose reference failed: that is not its fault."""
    seen = f"the {against.role} {against.candidate} is {verdict.status}: {verdict.evidence}"
    return Verdict(Status.BROKEN, REFERENCE_FAILED, evidence=seen, log=verdict.log)


def _environment(threads: int) -> dict[str, str]:
    """All that a worker sees of an environment: no secrets, and a number of threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **dict.fromkeys(names, str(threads))}


@cache
def _machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    model = next(named, platform.processor() or platform.machine())
    return f"{model}, {os.cpu_count()} cores"


@cache
def _installed(distribution: str) -> bool:
    from importlib.util import find_spec

    return find_spec(distribution) is not None
