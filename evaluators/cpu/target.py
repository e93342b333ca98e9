"""Target ``cpu``: candidates compiled to C, run and timed beside a reference on this machine."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from threadpoolctl import ThreadpoolController

from kernelwright.env.compiler.ir.dtypes import DTYPES
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, BuildError, find_toolchain
from kernelwright.env.options import ProblemError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import (
    NOISY_HOST,
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
    Role,
    Scalar,
    Stage,
    Status,
    Terms,
    Unpaired,
    Verdict,
    Workload,
)
from kernelwright.evaluators.corpus.impostors import passing_impostors
from kernelwright.evaluators.cpu.build import Builder, BuildFailureError, Loadable
from kernelwright.evaluators.cpu.draws import Draws
from kernelwright.evaluators.cpu.environment import environment, library_environment
from kernelwright.evaluators.cpu.facts import EMPTY
from kernelwright.evaluators.cpu.floor import measured_floor
from kernelwright.evaluators.cpu.host import ADVICE, DISTURBED, Watch
from kernelwright.evaluators.cpu.library import described
from kernelwright.evaluators.cpu.likeness import ORDERS, Likeness, Twins
from kernelwright.evaluators.cpu.memory import Arena, anonymous_file
from kernelwright.evaluators.cpu.native import program
from kernelwright.evaluators.cpu.pair import (
    ArmFailedError,
    Asked,
    Pair,
    Shape,
    Sitting,
    shape_for,
)
from kernelwright.evaluators.cpu.placement import at_work, placement
from kernelwright.evaluators.cpu.policy import (
    DEFAULT_JUDGING,
    Checking,
    Judging,
    Profile,
    StaticState,
)
from kernelwright.evaluators.cpu.secret import Secret
from kernelwright.evaluators.cpu.stress import MIXED
from kernelwright.evaluators.cpu.worker import Program, Worker, WorkerError
from kernelwright.evaluators.machine.facts import machine_facts
from kernelwright.evaluators.machine.measured import Machine
from kernelwright.evaluators.machine.probe import MachineError
from kernelwright.evaluators.statistics import claimed

START_LIMIT_S = 20.0
# What starting two workers takes, and one of them in Python, for estimates.
START_S, LIBRARY_START_S = 0.02, 0.4
# Calls that are not timed: the first, and the stressed ones.
MORE_CALLS = 3
# So many inputs on which trivial answers must fail.
IMPOSED = 2
# The extents of a range that every candidate is checked on: its ends, and so many between.
_ENDS, _BETWEEN = 2, 1
# What the measured peaks may be short of the true ones.
PHYSICAL_MARGIN = 0.1
# Where the judge has no core to spin on, a claim needs calls of so many harness floors.
CLAIM_FLOORS = 50.0


class Cpu:
    """C on this machine, timed in pairs.

    A screen is one pair of processes, a confirmation ``process_pairs`` of them with swapped start
    order. Every call of the candidate is checked.

    Args:
        problem: what is computed.
        seed: not used: inputs and orders come from the system's own randomness.
        judging: the campaign's profile, way of checking and policy.
        threads: how many threads a kernel and a library may use.
        flags: compiler flags in gcc's words, the same for candidate and baseline.
        toolchain: which compiler; the first that is there unless given.
        limit_s: the longest a call may take.
    """

    languages = frozenset(Language)
    deterministic = False
    repeats = True
    evidence = Evidence.MEASURED
    constraints: tuple[Constraint, ...] = ()
    members_reason = ""
    files: Mapping[str, str] = MappingProxyType({})
    judge_keys: Mapping[str, tuple[str, ...] | None] = MappingProxyType(
        {
            "profile": tuple(Profile),
            "check": tuple(Checking),
            "policy.symbols": None,
            "policy.libraries": None,
            "policy.static_state": tuple(StaticState),
            "state": ("cold", "warm"),
            "screen.pairs": None,
            "race.rounds": None,
            "confirm.process_pairs": None,
            "confirm.pairs": None,
        }
    )

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        judging: Judging = DEFAULT_JUDGING,
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
        self._judging = judging
        check_tensors(problem)
        self._sitting: Sitting | None = None
        self._where = placement(threads)
        self._one_thread = ThreadpoolController()
        # By workload: the fastest that any kernel was so far.
        self._least_ns: dict[str, float] = {}
        self._alike: Likeness | None = None
        self._call_s: dict[str, float] = {}
        self._machine: Machine | None = None
        self._is_measured = False
        self._examined: set[Workload] = set()
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
        cache_.build(EMPTY, found, (*flags, *openmp))  # a flag that it does not know is refused now
        self._builder = Builder(problem, found, (*flags, *openmp), cache_, judging.policy, threads)
        self._twins = Twins(self._builder, self._start)

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

    @property
    def device(self) -> Machine | None:
        """This machine, as it was measured once; None if it cannot be."""
        if not self._is_measured:
            self._is_measured = True
            with contextlib.suppress(MachineError, OSError):
                self._machine = machine_facts()
        return self._machine

    def floor_ns(self, workload: Workload) -> float:
        """The least time that this machine takes for a workload's operations and bytes, wherever
        its operands are; 0 for a range of extents.
        """
        return 0.0 if _is_ranged(workload) else self._floor_ns(workload, CacheState.WARM)

    def bound_ns(self, workload: Workload, state: CacheState, *, moved: bool = True) -> float:
        """The least time in ns with operands where they are in this state; 0 for a range of
        extents. See `target.Bounds`.
        """
        return 0.0 if _is_ranged(workload) else self._floor_ns(workload, state, moved=moved)

    def _floor_ns(self, workload: Workload, state: CacheState, *, moved: bool = True) -> float:
        if self.device is None:
            return 0.0
        outputs = (t.dtype for t in self.problem.tensors if t.role == "output")
        return 1e9 * self.device.floor_s(
            self.problem.flops(workload),
            self.problem.moved_bytes(workload) if moved else 0.0,
            dtype=next(outputs),
            state=state,
            threads=self.threads,
        )

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """NaN: a clock never tells a true time."""
        return np.full(len(candidates), np.nan)

    def estimate_s(self, request: Request) -> float:
        """The wall time that a request will take, from the calls measured so far, in s."""
        is_claim = request.stage is Stage.CONFIRM
        own = self._alike.seconds if self._alike is not None and is_claim else 0.0
        total = 0.0
        for against in request.against:
            arms = (request.candidate, against.candidate)
            calls = sum(self._seconds(arm) for arm in arms)
            start = LIBRARY_START_S if against.candidate.language is Language.LIBRARY else START_S
            total += request.process_pairs * ((request.pairs + MORE_CALLS) * calls + start)
        return own + total * len(self.problem.workloads)

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

    def listing(self, candidate: Candidate) -> tuple[str, str] | None:
        """A candidate's assembly for the first workload and the compiler's remarks on it; None
        where there is no compiler, or the candidate has none.
        """
        if self.missing or candidate.language is Language.LIBRARY:
            return None
        return self._builder.listing(candidate, self.problem.workloads[0])

    # Judging

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request, one after the other."""
        return [self._judge(request) for request in requests]

    def disclose(self) -> str | None:
        """The secret of this sitting in hexadecimal, for the record; None if it was not used. What
        is judged from now on is judged by another.
        """
        if self._sitting is None:
            return None
        used, self._sitting = self._sitting.secret.disclosed(), None
        return used

    def likeness(self, state: CacheState = CacheState.COLD) -> Likeness:
        """How far identical kernels seem apart on this host now.

        Raises:
            ArmFailedError: if the judge's own kernel fails.
        """
        with at_work(self._where), self._one_thread.limit(limits=1, user_api="blas"):
            return self._likeness(state)

    def _judge(self, request: Request) -> Verdict:
        if self.missing:
            return Verdict(Status.BROKEN, "no_compiler", evidence=self.missing[0])
        try:
            built = [
                (workload, self._builder.build(request.candidate, workload))
                for workload in self.problem.workloads
            ]
            others = {
                (workload, against.role): self._reference(against, workload)
                for workload in self.problem.workloads
                for against in request.against
            }
        except BuildFailureError as failure:
            return failure.verdict
        except ArmFailedError as failure:
            return failure.verdict
        _ = self.device  # measured before this thread is on one core
        with at_work(self._where), self._one_thread.limit(limits=1, user_api="blas"):
            return self._judge_built(request, built, others)

    def _reference(self, against: Reference, workload: Workload) -> Loadable:
        try:
            return self._builder.build(against.candidate, workload)
        except BuildFailureError as failure:
            raise ArmFailedError(Arm.REFERENCE, _broken(against, failure.verdict)) from None

    def _judge_built(
        self,
        request: Request,
        built: list[tuple[Workload, Loadable]],
        others: Mapping[tuple[Workload, Role], Loadable],
    ) -> Verdict:
        measurements: list[Measurement] = []
        worst, facts = 0.0, dict(built[0][1].facts)
        try:
            is_claim = request.stage is Stage.CONFIRM
            if self._alike is None or (is_claim and not self._alike.holds):
                self._alike = self._likeness(request.state)
            facts["host.likeness"] = self._alike.effect
            if is_claim and self._alike.is_noisy:
                what = f"{self._alike}, which leaves nothing to claim: {ADVICE}"
                return Verdict(Status.UNSTABLE, NOISY_HOST, what, facts=tuple(facts.items()))
            for workload, candidate in built:
                for against in request.against:
                    arms = {Arm.CANDIDATE: candidate, Arm.REFERENCE: others[workload, against.role]}
                    samples, error = self._measure(request, workload, arms, against, facts)
                    worst = max(worst, error)
                    measurements.append(
                        Measurement(
                            workload=workload.label,
                            role=against.role,
                            reference_key=against.candidate.key,
                            samples=samples,
                            clock="judge-monotonic",
                            cache_state=request.state,
                            evidence=Evidence.MEASURED,
                            machine=self.fingerprint,
                        )
                    )
            floors = [(w.label, self.floor_ns(w)) for w, _ in built]
            passed = Verdict(
                Status.OK,
                max_error=worst,
                measurements=tuple(measurements),
                facts=tuple(facts.items()),
                log=built[0][1].log,
                floors_ns=tuple((label, floor) for label, floor in floors if floor),
            )
            facts |= _host_facts(measurements, self._sat().watch)
            passed = replace(passed, facts=tuple(facts.items()))
            if request.stage is not Stage.CONFIRM:
                return passed
            self._see_that_the_clock_is_fine_enough(passed)
            self._see_that_it_was_calm(request, facts)
        except ArmFailedError as failure:
            return replace(failure.verdict, facts=tuple(facts.items()))
        return claimed(passed, Terms(request.alpha, self._alike.effect))

    def _measure(
        self,
        request: Request,
        workload: Workload,
        arms: Mapping[Arm, Loadable],
        against: Reference,
        facts: dict[str, float],
    ) -> tuple[tuple[ProcessPair, ...], float]:
        """The samples of one reference, and the candidate's largest error."""
        sitting = self._sat()
        self._see_that_it_has_teeth(workload)
        keys = {Arm.CANDIDATE: request.candidate.key, Arm.REFERENCE: against.candidate.key}
        try:
            worst = self._checked_on_the_range(request, workload, arms)
            samples = []
            for number in range(request.process_pairs):
                drawn = self._drawn(workload, None)
                draws = Draws(self.problem, drawn, self._judging.check)
                order = ORDERS[number % 2]
                # Every combination of who starts and who is called first.
                roles = order if number // 2 % 2 else order[::-1]
                while True:
                    pair = self._pair(sitting, workload, draws, request, arms)
                    asked = self._asked(request, draws, number)
                    asked = replace(asked, of_candidates=against.role is Role.INCUMBENT)
                    found = pair.measure(asked, order, roles)
                    self._least_ns[workload.label] = min(
                        pair.fastest_ns, self._least_ns[workload.label]
                    )
                    # A kernel that is shorter than any before has to be among decoys all the same.
                    if not self._shape(sitting, workload, draws).is_safer_than(pair.shape):
                        break
                samples.append(found)
                worst = max(worst, pair.worst_error)
                self._call_s |= {keys[arm]: seconds for arm, seconds in pair.call_s.items()}
                facts |= pair.facts
                facts["host.disturbed"] = facts.get("host.disturbed", 0.0) + pair.disturbed
                self._see_that_it_is_possible(drawn, found, request.state)
        except ArmFailedError as failure:
            if failure.arm is Arm.REFERENCE:
                verdict = _broken(against, failure.verdict)
                raise ArmFailedError(Arm.REFERENCE, verdict) from None
            raise
        return tuple(samples), worst

    def _see_that_it_has_teeth(self, workload: Workload) -> None:
        """No kernel can be judged on a problem whose error model lets trivial answers pass.

        Raises:
            ProblemError: naming them.
        """
        if workload in self._examined:
            return
        # Of a range the greatest extents: of a single element the mean is the answer.
        fixed = self._drawn(workload, 1)
        draws = Draws(self.problem, fixed)
        rng = self._sat().secret.stream("impostors", workload.label)
        # One after the other: a generator may use its arrays again.
        some = (draws.inputs(rng) for _ in range(IMPOSED))
        passing = passing_impostors(self.problem, some, draws.shapes)
        if passing:
            what = "expected that no trivial answer is within the error model, found that these are"
            raise ProblemError(f"{self.problem.name} {fixed.label}: {what}: {', '.join(passing)}")
        self._examined.add(workload)

    def _sat(self) -> Sitting:
        """The sitting, begun with a secret of its own."""
        if self._sitting is None:
            floor = measured_floor(self._where, self.threads)
            watch = Watch(self._where)
            self._sitting = Sitting(Secret(), self._where, floor, self._limit_s, watch)
        return self._sitting

    def _pair(
        self,
        sitting: Sitting,
        workload: Workload,
        draws: Draws,
        request: Request,
        arms: Mapping[Arm, Loadable],
    ) -> Pair:
        """A process pair with slots for kernels as short as the shortest of this workload."""

        def start(arena: Arena, arm: Arm) -> Worker:
            return self._start(arena, arms[arm])

        label = workload.label
        if label not in self._least_ns:
            probe = Pair(sitting, draws, shape_for(np.inf, sitting.floor, 1), start)
            self._least_ns[label] = probe.probe(request.state)
        return Pair(sitting, draws, self._shape(sitting, workload, draws), start)

    def _shape(self, sitting: Sitting, workload: Workload, draws: Draws) -> Shape:
        """The slots for a kernel as fast as the fastest so far."""
        return shape_for(self._least_ns[workload.label], sitting.floor, draws.slot_bytes)

    def _asked(self, request: Request, draws: Draws, number: int) -> Asked:
        """What a process pair is for. A screen looks once at several kinds in one; a confirmation
        goes through the kinds from pair to pair.
        """
        kinds: tuple[str, ...] = draws.stresses
        screening = request.stage is not Stage.CONFIRM
        if kinds:
            turn = kinds[(request.trial + number) % len(kinds)]
            kinds = tuple({MIXED, turn} & set(draws.stresses)) if screening else (turn,)
        return Asked(request.pairs, request.state, kinds, request.stage is Stage.SCREEN)

    def _checked_on_the_range(
        self, request: Request, workload: Workload, arms: Mapping[Arm, Loadable]
    ) -> float:
        """Every candidate for a range of extents is checked at its ends and in between."""
        worst = 0.0
        if not _is_ranged(workload):
            return worst
        for number in range(_ENDS + _BETWEEN):
            draws = Draws(self.problem, self._drawn(workload, number), self._judging.check)
            pair = self._pair(self._sat(), workload, draws, request, arms)
            pair.check(Asked(0, request.state, draws.stresses[:1]))
            worst = max(worst, pair.worst_error)
        return worst

    def _see_that_it_is_possible(
        self, workload: Workload, pair: ProcessPair, state: CacheState
    ) -> None:
        """No kernel is faster than what this machine can do, less a margin."""
        floor = self._floor_ns(workload, state)
        found = statistics.median(time for time, _ in pair.samples_ns)
        if found < (1 - PHYSICAL_MARGIN) * floor:
            what = (
                f"{workload.label}: {found / 1e3:.3g} us, where the operations and bytes that the "
                f"problem declares take this machine at least {floor / 1e3:.3g} us"
            )
            verdict = Verdict(Status.TOO_FAST, "below_floor", evidence=what)
            raise ArmFailedError(Arm.CANDIDATE, verdict)

    def _see_that_the_clock_is_fine_enough(self, passed: Verdict) -> None:
        """Where the judge sleeps during a call, its clock has a wake-up in it: too much for a claim
        about a short kernel.
        """
        floor = self._sat().floor
        for m in passed.measurements if floor.blocking else ():
            assert not isinstance(m.samples, Unpaired)
            found = statistics.median(min(times) for pair in m.samples for times in pair.samples_ns)
            if found < CLAIM_FLOORS * floor.call_ns:
                what = (
                    f"{m.workload}: {found / 1e3:.3g} us is less than {CLAIM_FLOORS:g} times what "
                    f"the harness takes ({floor.call_ns / 1e3:.3g} us) where no core is left for "
                    "the judge: one more core, fewer threads or larger extents give a claim"
                )
                verdict = Verdict(Status.UNSTABLE, "short_for_the_clock", evidence=what)
                raise ArmFailedError(Arm.CANDIDATE, verdict)

    def _likeness(self, state: CacheState) -> Likeness:
        """How far identical kernels seem apart now.

        Raises:
            ArmFailedError: if the judge's own kernel fails, which is no candidate's fault.
        """
        return self._twins.measured(self._sat(), state)

    def _see_that_it_was_calm(self, request: Request, facts: Mapping[str, float]) -> None:
        """A claim on pairs that were disturbed, as no others were to be had, is none."""
        pairs = request.process_pairs * request.pairs * len(request.against)
        pairs *= len(self.problem.workloads)
        if facts["host.disturbed"] > DISTURBED * pairs:
            what = (
                f"{facts['host.disturbed']:.0f} of {pairs} pairs of calls were interrupted or met "
                f"a slow clock, and so were those that should have replaced them: {ADVICE}"
            )
            verdict = Verdict(Status.UNSTABLE, "disturbed_host", evidence=what)
            raise ArmFailedError(Arm.CANDIDATE, verdict)

    def _start(self, arena: Arena, loadable: Loadable) -> Worker:
        if loadable.library is None:
            about = described(loadable.function, arena.fields, arena.slots)
            module = "kernelwright.evaluators.cpu.library"
            words = ("-P", "-m", module, str(program("library.c")), about)
            return Worker(
                Program(sys.executable, words, is_trusted=True),
                arena,
                library_environment(self.threads),
                threads=self.threads,
                where=self._where,
                limit_s=START_LIMIT_S,
            )
        contents = loadable.contents()
        if contents is None:
            what = "the library that was built is not there any more, or is another one"
            raise WorkerError(Status.BROKEN, "library_changed", what)
        library = anonymous_file("kernel", contents)
        try:
            return Worker(
                Program(str(program("worker.c")), (), library),
                arena,
                environment(self.threads),
                threads=self.threads,
                where=self._where,
                limit_s=self._limit_s,
                insist=self._judging.profile is not Profile.TRUSTED_CODEGEN,
            )
        finally:
            os.close(library)

    # Shapes

    def _drawn(self, workload: Workload, number: int | None) -> Workload:
        """The workload with every range replaced by a number from it: the least (0), the greatest
        (1), and otherwise odd ones, which no tile divides.
        """
        if not _is_ranged(workload):
            return workload
        sitting = self._sat()
        rng = sitting.secret.stream("extents", sitting.pairs, -1 if number is None else number)

        def drawn(extent: ExtentRange) -> int:
            if number is not None and number < _ENDS:
                return (extent.low, extent.high)[number]
            return odd_near(int(rng.integers(extent.low, extent.high + 1)), extent)

        return Workload(
            tuple(
                (name, drawn(extent) if isinstance(extent, ExtentRange) else extent)
                for name, extent in workload.extents
            )
        )


def _host_facts(measurements: Sequence[Measurement], watch: Watch) -> dict[str, float]:
    """What the host did while these were taken."""
    pairs = [p for m in measurements if not isinstance(m.samples, Unpaired) for p in m.samples]
    seen = [conditions for pair in pairs for conditions in pair.conditions]
    return {
        "host.clock_hz": statistics.median(c.clock_hz for c in seen),
        "host.clock_drift": watch.drift,
        "host.stolen_ns": sum(c.stolen_ns for c in seen),
        "host.interruptions": float(sum(c.interruptions for c in seen)),
        "host.discarded": float(sum(pair.discarded for pair in pairs)),
    }


def _is_ranged(workload: Workload) -> bool:
    return any(isinstance(extent, ExtentRange) for _, extent in workload.extents)


def check_tensors(problem: Problem) -> None:
    """Refuse what has no place in a kernel's arguments.

    Raises:
        ProblemError: naming the tensor.
    """
    if not any(t.role == "output" for t in problem.tensors):
        raise ProblemError(f"{problem.name}: expected at least one output")
    for tensor in problem.tensors:
        if tensor.dtype not in DTYPES:
            expected = f"expected one of {', '.join(DTYPES)} on a CPU, found {tensor.dtype}"
            raise ProblemError(f"{problem.name}: {tensor.name}: {expected}")
        if tensor.role == "scratch":
            expected = "expected inputs and outputs; scratch is not granted on a CPU yet"
            raise ProblemError(f"{problem.name}: {tensor.name}: {expected}")


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


def _broken(against: Reference, verdict: Verdict) -> Verdict:
    """The verdict on a candidate whose reference failed: that is not its fault."""
    seen = f"the {against.role} {against.candidate} is {verdict.status}: {verdict.evidence}"
    return Verdict(Status.BROKEN, REFERENCE_FAILED, evidence=seen, log=verdict.log)


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


def odd_near(value: int, extent: ExtentRange) -> int:
    """An odd number of a range at a number of it or next to it; a range of one even number has
    none.
    """
    odd = value | 1
    return odd if odd <= extent.high else max(odd - 2, extent.low)
