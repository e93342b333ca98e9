"""Target ``gpu-model``: the analytic GEMM model as a judge, with optional simulated noise.

The device's table says which model (`machine.gemm_model`), and with it which rules decide whether a
block can be launched (`spaces.launch`): the lecture's registers a thread, warp tile and shared
memory, or shared memory alone, exactly. A screen is one noisy sample of the candidate, or as many
as ``judge.screen.pairs`` says, against the baseline's true time; a confirmation draws
``process_pairs x pairs`` pairs in which both arms are noisy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.compiler.machine.device import (
    Device,
    HopperDevice,
    device_names,
    device_sha256,
    load_device,
)
from kernelwright.env.compiler.machine.gemm_model import estimate_on
from kernelwright.env.compiler.machine.gpu_gemm import Estimate
from kernelwright.env.compiler.machine.hopper_gemm import HopperEstimate
from kernelwright.env.options import FileOption, OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.launch import GEMM_KNOBS, SPLIT, launch_rules
from kernelwright.env.types import (
    Arm,
    Artifact,
    CacheState,
    Candidate,
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
from kernelwright.evaluators.early import taken
from kernelwright.evaluators.noise import Noise, noisy_pair
from kernelwright.evaluators.statistics import claimed
from kernelwright.evaluators.target import EARLY_KEYS, MODELLED_JUDGE_KEYS, roofline_ns

# Estimates that are kept with their breakdown.
MOST_KEPT = 256


@lru_cache(maxsize=64)
def _known_times(device: Device, shape: tuple[int, int, int], itemsize: int) -> dict[str, float]:
    """Times by candidate key; the model is a pure function, so instances share what was
    computed.
    """
    return {}


def _splitting() -> tuple[str, ...]:
    """The devices whose model has the knob ``split_k``."""
    return tuple(n for n in device_names() if isinstance(load_device(n), HopperDevice))


class GpuModel:
    """The analytic GPU model as a target.

    Args:
        problem: a GEMM with knobs ``bm bn bk warps stages group_m``, and ``split_k`` where the
            device's model has it, and extents ``m n k``.
        seed: keys the simulated noise.
        device: a device table's name or path.
        noise: how the simulated clock errs.

    Raises:
        ValueError: if the problem is not such a GEMM.
        OptionError: if there is no such device, or its model lacks the knob ``split_k``.
    """

    languages = frozenset({Language.KNOBS})
    deterministic = True
    missing: tuple[str, ...] = ()
    evidence = Evidence.MODELLED
    library: Candidate | None = None
    members_reason = ""
    judge_keys = MappingProxyType(
        {**MODELLED_JUDGE_KEYS, "race.rounds": None, **dict.fromkeys(EARLY_KEYS)}
    )
    judge_unasked = EARLY_KEYS

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        device: Annotated[
            str,
            Field(description="a device table's name or YAML path"),
            FileOption((".yaml", ".yml")),
        ] = "h100-lecture",
        noise: Annotated[Noise, Field(description="how the simulated clock errs")] = Noise(),  # noqa: B008 - frozen,
    ) -> None:
        self.problem = problem
        self.device = load_device(device)
        self.files = {device: device_sha256(device)}
        self._seed, self._noise = seed, noise
        names = {knob.name for knob in problem.knobs}
        splits = SPLIT in names
        self._names = (*GEMM_KNOBS, SPLIT) if splits else GEMM_KNOBS
        if names != set(self._names):
            raise ValueError(
                f"expected a GEMM with knobs {' '.join(GEMM_KNOBS)}, found {problem.name}"
            )
        if splits and not isinstance(self.device, HopperDevice):
            known = _splitting()
            expected = f"a device whose model has the knob {SPLIT} ({', '.join(known)})"
            raise OptionError("device", expected, repr(device), known[0])
        extents = problem.workloads[0].fixed
        if len(problem.workloads) != 1 or set(extents) != {"m", "n", "k"}:
            raise ValueError(
                f"gpu-model: expected one workload with extents m n k, found {extents}"
            )
        self._shape = (extents["m"], extents["n"], extents["k"])
        self._itemsize = np.dtype(problem.tensors[0].dtype).itemsize
        split_of = extents["k"] if splits else None
        self.constraints = launch_rules(self.device, self._itemsize, split_of)
        self._times = _known_times(self.device, self._shape, self._itemsize)
        # The latest estimates by key: prompts explain what was judged just now.
        self._kept: OrderedDict[str, tuple[Estimate | HopperEstimate, int]] = OrderedDict()
        self._floor = self.floor_ns(problem.workloads[0])

    @property
    def repeats(self) -> bool:
        """Whether its simulated clock errs."""
        return not self._noise.is_zero

    def members(self, problem: Problem) -> NDArray[np.int64] | None:
        """None: the model knows every configuration."""
        del problem
        return None

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """The problem's own unscheduled configuration."""
        return problem.unscheduled

    def baseline(self, space: Space) -> Candidate:
        """The space's default, which is the unscheduled configuration."""
        assert space.default is not None
        return space.default

    def floor_ns(self, workload: Workload) -> float:
        """The roofline's least time in ns."""
        return roofline_ns(self.device, self.problem, workload)

    def bound_ns(self, workload: Workload, state: CacheState, *, moved: bool = True) -> float:
        """The roofline's least time in ns, wherever operands are; see `target.Bounds`."""
        del state
        return roofline_ns(self.device, self.problem, workload, moved=moved)

    def estimate(self, candidates: Sequence[Candidate]) -> Estimate | HopperEstimate:
        """The model's estimates with their breakdown, one row a candidate; no rule is checked."""
        rows = [candidate.knobs for candidate in candidates]
        columns = {name: np.array([row[name] for row in rows]) for name in self._names}
        return estimate_on(self.device, self._shape, columns, self._itemsize)

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Noise-free times in ns; NaN where a block cannot be launched."""
        self._learn(candidates)
        return np.array([self._time(candidate) or np.nan for candidate in candidates])

    def _learn(self, candidates: Sequence[Candidate]) -> None:
        fresh = [c for c in dict.fromkeys(candidates) if c.key not in self._times]
        if not fresh:
            return
        rows = [candidate.knobs for candidate in fresh]
        columns = {name: np.array([row[name] for row in rows]) for name in self._names}
        found = estimate_on(self.device, self._shape, columns, self._itemsize)
        times = 1e9 * found.time_s
        runs = np.all([rule.holds(columns) for rule in self.constraints], axis=0)
        for candidate, time, ran in zip(fresh, times.tolist(), runs.tolist(), strict=True):
            self._times[candidate.key] = time if ran else 0.0
        for at, candidate in enumerate(fresh[-MOST_KEPT:], start=max(0, len(fresh) - MOST_KEPT)):
            self._kept[candidate.key] = found, at
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def _time(self, candidate: Candidate) -> float:
        """The true time in ns, 0 for what cannot be launched."""
        if candidate.key not in self._times:
            self._learn([candidate])
        return self._times[candidate.key]

    @property
    def facts(self) -> tuple[str, ...]:
        """A screen tells none: the model is vectorised, and breakdowns are for those confirmed."""
        return ()

    def build(self, candidate: Candidate) -> Artifact:
        """The breakdown of a candidate's estimate as facts, and in the log what bounds it."""
        found, at = self._kept.get(candidate.key) or (self.estimate([candidate]), 0)
        row = found.row(at)
        bound = row.pop("bound")
        facts = tuple((name, float(value)) for name, value in row.items())
        return Artifact(entry=self.problem.name, facts=facts, log=f"bound by {bound}")

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request."""
        self._learn(
            [r.candidate for r in requests] + [a.candidate for r in requests for a in r.against]
        )
        return [self._judge(request) for request in requests]

    def _judge(self, request: Request) -> Verdict:
        time = self._time(request.candidate)
        if not time:
            row = {name: np.array([value]) for name, value in request.candidate.knobs.items()}
            broken = [
                r.explain(request.candidate.knobs) for r in self.constraints if not r.holds(row)[0]
            ]
            return Verdict(
                Status.BUILD_ERROR, broken[0].code, evidence="; ".join(v.reason for v in broken)
            )
        workload = self.problem.workloads[0].label
        measurements = tuple(self._measure(request, time, against) for against in request.against)
        floors = ((workload, self._floor),)
        passed = Verdict(Status.OK, measurements=measurements, floors_ns=floors)
        if request.stage is not Stage.CONFIRM:
            return passed
        artifact = self.build(request.candidate)
        told = replace(passed, facts=artifact.facts, log=artifact.log)
        return claimed(told, Terms(request.alpha))

    def _measure(self, request: Request, time: float, against: Reference) -> Measurement:
        other = self._time(against.candidate)
        if not other:
            raise ValueError(
                f"reference {against.candidate} cannot be launched on {self.device.name}"
            )
        key, first = request.candidate.key, request.first_repeat
        samples: Unpaired | tuple[ProcessPair, ...]
        if request.stage is Stage.SCREEN:
            # It counts down, so that no other stage draws what it drew.
            times = taken(
                request,
                lambda number: (
                    time
                    * noisy_pair(self._noise, self._seed, key, first - number, request.trial)[0]
                ),
            )
            samples = Unpaired(times, (other,), reference_exact=True)
        else:
            samples = tuple(
                self._process_pair(request, time, other, first + p * request.pairs, swap=p % 2 == 1)
                for p in range(request.process_pairs)
            )
        return Measurement(
            workload=self.problem.workloads[0].label,
            role=against.role,
            reference_key=against.candidate.key,
            samples=samples,
            clock="gpu-model",
            cache_state=CacheState.COLD,
            evidence=Evidence.MODELLED,
            machine=self.device.name,
        )

    def _process_pair(
        self, request: Request, time: float, other: float, first: int, *, swap: bool
    ) -> ProcessPair:
        factors = [
            noisy_pair(self._noise, self._seed, request.candidate.key, first + i, request.trial)
            for i in range(request.pairs)
        ]
        arms = (Arm.REFERENCE, Arm.CANDIDATE) if swap else (Arm.CANDIDATE, Arm.REFERENCE)
        return ProcessPair(arms[0], arms, tuple((time * c, other * r) for c, r in factors))
