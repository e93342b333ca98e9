"""Target ``cpu-model``: the analytic CPU model as a judge of schedules.

A candidate's directives are proved legal and turned into C as on ``cpu``; what would not compile
there is a build error here, with the compiler's reason. The model has no noise, so a claim is the
ratio itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.compiler.codegen.form import check_form
from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.simplify import simplify_procedure
from kernelwright.env.compiler.machine.cpu import (
    LOADED_TRIPS,
    CpuEstimate,
    estimate,
    fact_names,
    load_machine,
    machine_sha256,
)
from kernelwright.env.compiler.schedule.memo import cached_apply
from kernelwright.env.options import FileOption, OptionError
from kernelwright.env.problems.program import ProgramError, definition_of
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import (
    Arm,
    Artifact,
    CacheState,
    Candidate,
    Directive,
    Evidence,
    Language,
    Measurement,
    Problem,
    ProcessPair,
    Reference,
    Request,
    Scalar,
    Stage,
    Status,
    Terms,
    Unpaired,
    Verdict,
    Workload,
)
from kernelwright.evaluators.statistics import claimed
from kernelwright.evaluators.target import MODELLED_JUDGE_KEYS


@dataclass(frozen=True, slots=True)
class _Judged:
    """What is known of a candidate: its estimates, one a workload, or why there are none."""

    estimates: tuple[CpuEstimate, ...] = ()
    times_ns: tuple[float, ...] = ()
    code: str = ""
    reason: str = ""


class CpuModel:
    """The analytic CPU model as a target, for schedules and for knobs that stand for schedules.

    Args:
        problem: one with a definition in LoopIR and workloads of fixed extents.
        seed: not used: the model has no noise.
        machine: a CPU table's name or path.
        threads: on how many cores parallel loops run.
        loaded_trips: how often a loop runs whose extent is read from memory.

    Raises:
        ValueError: if the problem has no such definition.
        OptionError: if there is no such table, or the machine has fewer cores.
    """

    languages = frozenset({Language.SCHEDULE, Language.KNOBS})
    deterministic = True
    missing: tuple[str, ...] = ()
    evidence = Evidence.MODELLED
    library: Candidate | None = None
    constraints: tuple[Constraint, ...] = ()
    members_reason = ""
    judge_keys = MODELLED_JUDGE_KEYS

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        machine: Annotated[
            str,
            Field(description="a CPU table's name or YAML path"),
            FileOption((".yaml", ".yml")),
        ] = "cpu-lecture",
        threads: Annotated[
            int, Field(ge=1, le=1024, description="cores that parallel loops run on")
        ] = 1,
        loaded_trips: Annotated[
            float, Field(gt=0, description="trips of loops whose extent is read from memory")
        ] = LOADED_TRIPS,
    ) -> None:
        if problem.template is not None:
            raise ValueError(
                f"{problem.name}: expected schedules, found a template, which is C text"
            )
        del seed
        self.problem, self.threads = problem, threads
        self.device = load_machine(machine)
        self.files = {machine: machine_sha256(machine)}
        if threads > self.device.cores:
            expected = f"at most the {self.device.cores} cores of {self.device.name}"
            raise OptionError("threads", expected, str(threads))
        self._loaded_trips = loaded_trips
        try:
            self._definitions = tuple(definition_of(problem, w) for w in problem.workloads)
        except ProgramError as error:
            raise ValueError(f"cpu-model: {error}") from None
        self._itemsize = min(np.dtype(tensor.dtype).itemsize for tensor in problem.tensors)
        self._floors = tuple(self.floor_ns(workload) for workload in problem.workloads)
        self._known: dict[str, _Judged] = {}

    def members(self, problem: Problem) -> NDArray[np.int64] | None:
        """None: the model knows every configuration."""
        del problem
        return None

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """The problem's own unscheduled configuration, where it has knobs."""
        return problem.unscheduled

    def baseline(self, space: Space) -> Candidate:
        """The definition as it is: a schedule without directives, whatever the space."""
        del space
        return Candidate(Language.SCHEDULE, ())

    def floor_ns(self, workload: Workload) -> float:
        """The roofline's least time in ns."""
        return self.bound_ns(workload, CacheState.COLD)

    def bound_ns(self, workload: Workload, state: CacheState, *, moved: bool = True) -> float:
        """The roofline's least time in ns, wherever operands are; see `target.Bounds`."""
        del state
        flops = self.problem.flops(workload)
        moved_bytes = self.problem.moved_bytes(workload) if moved else 0.0
        return 1e9 * self.device.floor_s(
            flops, moved_bytes, itemsize=self._itemsize, threads=self.threads
        )

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Modelled times in ns, of several workloads the geometric mean; NaN where a candidate is
        refused.
        """
        return np.array([_mean(self._judged(candidate).times_ns) for candidate in candidates])

    def _judged(self, candidate: Candidate) -> _Judged:
        known = self._known.get(candidate.key)
        if known is None:
            known = self._known[candidate.key] = self._learn(candidate)
        return known

    def _learn(self, candidate: Candidate) -> _Judged:
        try:
            trace = self._trace(candidate)
            found = tuple(self._estimate(p, trace) for p in self._definitions)
        except ScheduleError as error:
            return _Judged(code="illegal_directive", reason=str(error))
        except ProgramError as error:
            return _Judged(code="no_program", reason=str(error))
        except CompilerError as error:
            return _Judged(code="not_lowered", reason=str(error))
        # What the problem counts as its work bounds the time, whatever the loops do.
        floors = zip(found, self._floors, strict=True)
        return _Judged(found, tuple(max(1e9 * each.time_s, floor) for each, floor in floors))

    def _trace(self, candidate: Candidate) -> tuple[Directive, ...]:
        name = self.problem.name
        if candidate.language is Language.SCHEDULE:
            return tuple(step for step in candidate.payload if isinstance(step, Directive))
        if candidate.language is Language.KNOBS and self.problem.sketch is not None:
            return self.problem.sketch(candidate.knobs)
        raise ProgramError(f"{name}: expected a schedule, found {candidate}")

    def _estimate(self, definition: Procedure, trace: Sequence[Directive]) -> CpuEstimate:
        # Every directive has verified its result and proved it legal; what is left of lowering is
        # to simplify, and to see that there is C for it.
        final = simplify_procedure(cached_apply(definition, trace))
        check_form(final)
        return estimate(final, self.device, threads=self.threads, loaded_trips=self._loaded_trips)

    def estimate(self, candidate: Candidate) -> tuple[CpuEstimate, ...]:
        """The model's estimates with their breakdown, one a workload; none if it is refused."""
        return self._judged(candidate).estimates

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of an estimate's parts."""
        return fact_names()

    def build(self, candidate: Candidate) -> Artifact:
        """The breakdown of a candidate's first workload as facts, and in the log what bounds each.

        Raises:
            ValueError: if the candidate is refused.
        """
        known = self._judged(candidate)
        if not known.estimates:
            raise ValueError(f"{candidate}: {known.reason}")
        labels = [workload.label for workload in self.problem.workloads]
        bounds = zip(labels, known.estimates, strict=True)
        log = "\n".join(f"{label}: bound by {each.bound}" for label, each in bounds)
        return Artifact(entry=self.problem.name, facts=known.estimates[0].facts(), log=log)

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request."""
        return [self._judge(request) for request in requests]

    def _judge(self, request: Request) -> Verdict:
        known = self._judged(request.candidate)
        if not known.estimates:
            return Verdict(Status.BUILD_ERROR, known.code, evidence=known.reason)
        labels = [workload.label for workload in self.problem.workloads]
        measurements = tuple(
            self._measure(request, label, place, against)
            for against in request.against
            for place, label in enumerate(labels)
        )
        artifact = self.build(request.candidate)
        passed = Verdict(
            Status.OK,
            measurements=measurements,
            facts=artifact.facts,
            log=artifact.log,
            floors_ns=tuple(zip(labels, self._floors, strict=True)),
        )
        if request.stage is not Stage.CONFIRM:
            return passed
        return claimed(passed, Terms(request.alpha))

    def _measure(self, request: Request, label: str, place: int, against: Reference) -> Measurement:
        other = self._judged(against.candidate)
        if not other.times_ns:
            raise ValueError(f"reference {against.candidate} is refused: {other.reason}")
        time, reference = self._judged(request.candidate).times_ns[place], other.times_ns[place]
        samples: Unpaired | tuple[ProcessPair, ...]
        if request.stage is Stage.CONFIRM:
            samples = tuple(
                _process_pair(time, reference, request.pairs, swap=number % 2 == 1)
                for number in range(request.process_pairs)
            )
        else:
            samples = Unpaired((time,), (reference,), reference_exact=True)
        return Measurement(
            workload=label,
            role=against.role,
            reference_key=against.candidate.key,
            samples=samples,
            clock="cpu-model",
            cache_state=CacheState.COLD,
            evidence=Evidence.MODELLED,
            machine=self.device.name,
        )


def _mean(times: tuple[float, ...]) -> float:
    """The geometric mean; one time is its own, to the last bit."""
    if len(times) < 2:
        return times[0] if times else math.nan
    return math.exp(math.fsum(map(math.log, times)) / len(times))


def _process_pair(time: float, reference: float, pairs: int, *, swap: bool) -> ProcessPair:
    arms = (Arm.REFERENCE, Arm.CANDIDATE) if swap else (Arm.CANDIDATE, Arm.REFERENCE)
    return ProcessPair(arms[0], arms, ((time, reference),) * pairs)
