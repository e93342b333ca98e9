"""Target ``recorded``: a landscape measured earlier, replayed as a judge.

A screen is one recorded sample, chosen by (seed, candidate key, repeat), against the baseline's
recorded median, or as many as ``judge.screen.pairs`` says; another look at a candidate is several,
drawn with replacement. A confirmation uses
every recorded sample of both arms once: the ratio of medians with an unpaired bootstrap interval.
Configurations that failed when they were recorded fail again, with the status of their kind of
failure; a recorded result error above the problem's bound is ``wrong``; a sample below the roofline
is ``too_fast``. What a configuration cost its tuner is among a verdict's facts (``compile_s``, …).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.compiler.machine.device import device_sha256, load_device
from kernelwright.env.landscape import ENDINGS
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import (
    Entry,
    Failure,
    Landscape,
    LandscapeError,
    NoLandscapeError,
    printable,
)
from kernelwright.env.options import FileOption, OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    KnobPayload,
    Language,
    Measurement,
    Problem,
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
from kernelwright.evaluators.early import taken
from kernelwright.evaluators.noise import keyed_uniforms
from kernelwright.evaluators.statistics import claimed
from kernelwright.evaluators.target import EARLY_KEYS, roofline_ns

# Which device table gives the roofline of a recording, by a word of the GPU's name. Without one
# no sample is called too fast and no credit is capped.
_ROOFLINES = {"H200": "h200", "H100": "h100-lecture"}

_STATUSES = {
    Failure.COMPILE: Status.BUILD_ERROR,
    Failure.CONSTRAINTS: Status.BUILD_ERROR,
    Failure.RUNTIME: Status.CRASHED,
    Failure.CORRECTNESS: Status.WRONG,
    Failure.TIMEOUT: Status.TIMEOUT,
}


# Flat indices by landscape and knobs, of a few landscapes.
MOST_SHARED = 16
_MEMBERS: dict[tuple[object, ...], NDArray[np.int64]] = {}


def _open(name: str) -> Landscape:
    try:
        return open_landscape(locate(name))
    except NoLandscapeError as error:
        raise OptionError("landscape", error.expected, error.found, error.nearest) from None
    except LandscapeError as error:
        raise OptionError("landscape", "a readable recording", str(error)) from None


def _shape(extents: Mapping[str, int]) -> str:
    """Of which extents something is, in words."""
    listed = " ".join(f"{name}={size}" for name, size in extents.items())
    return f"of {listed}" if listed else "without extents"


def code_of(error: str) -> str:
    """The class code of a recorded error: ``shared memory`` and ``RuntimeFailedConfig`` become
    ``shared_memory`` and ``runtime_failed_config``.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.strip())
    return re.sub(r"\W+", "_", words.lower()).strip("_")[:100] or "recorded_failure"


def _indices(space: KnobSpace, landscape: Landscape) -> NDArray[np.int64]:
    """Flat indices of a landscape's configurations.

    Raises:
        ValueError: naming a value that a knob does not have.
    """
    stride, index = 1, np.zeros(len(landscape.entries), dtype=np.int64)
    places = {name: place for place, name in enumerate(sorted(landscape.knob_names))}
    for knob in reversed(space.knobs):
        known = {(type(value), value): stride * level for level, value in enumerate(knob.values)}
        values = [entry.knobs[places[knob.name]][1] for entry in landscape.entries]
        try:
            index += [known[type(value), value] for value in values]
        except KeyError:
            for entry in landscape.entries:
                space.index_of(dict(entry.knobs))
        stride *= len(knob.values)
    return index


class Recorded:
    """A recorded landscape as a target.

    Args:
        problem: the problem that was recorded; its extents must be the recording's.
        seed: keys the choice of samples.
        landscape: a shipped name or a file.

    Raises:
        OptionError: if there is no such recording, it cannot be read, it was recorded for other
            extents.
    """

    languages = frozenset({Language.KNOBS})
    deterministic = True
    missing: tuple[str, ...] = ()
    evidence = Evidence.RECORDED
    constraints: tuple[Constraint, ...] = ()
    members_reason = "not in the landscape"
    repeats = True
    judge_keys: Mapping[str, tuple[str, ...] | None] = MappingProxyType(dict.fromkeys(EARLY_KEYS))
    judge_unasked = EARLY_KEYS

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        landscape: Annotated[
            str,
            Field(description="a shipped landscape's name, or a file"),
            FileOption(ENDINGS),
        ],
    ) -> None:
        self.problem = problem
        self._seed = seed
        self.landscape = _open(landscape)
        workload = problem.workloads[0]
        recorded = dict(self.landscape.extents)
        if len(problem.workloads) != 1 or recorded != workload.fixed:
            raise OptionError(
                "landscape",
                f"a recording {_shape(workload.fixed)}",
                f"{landscape!r} {_shape(recorded)}",
            )
        about = dict(self.landscape.metadata)
        for name, value in problem.traits:
            if about.get(name, value) != value:
                expected, found = f"a recording with {name}={value}", f"{name}={about[name]}"
                raise OptionError("landscape", expected, f"{landscape!r} with {found}")
        table = next((t for word, t in _ROOFLINES.items() if word in self.landscape.device), None)
        device = load_device(table) if table else None
        self._floor = roofline_ns(device, problem, workload)
        # Of a kernel whose operations nobody counted, no roofline is known.
        self.device = device if self._floor else None
        self.files = {landscape: self.landscape.sha256}
        if table and self.device:
            self.files[table] = device_sha256(table)
        self._workload = workload.label
        self._floors = ((self._workload, self._floor),) if self._floor else ()
        self.library = (
            Candidate(Language.LIBRARY, self.landscape.library)
            if self.landscape.library and self.landscape.library_ns
            else None
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the recording's reader has to say, such as that the file breaks off."""
        return self.landscape.notes

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of what is recorded of configurations that ran."""
        ran = (entry for entry in self.landscape.entries if entry.error is None)
        names = {name for entry in ran for name, _ in (*entry.facts, *entry.costs_s)}
        return tuple(sorted(names))

    def members(self, problem: Problem) -> NDArray[np.int64]:
        """Flat indices of the recorded configurations, failed ones included.

        Raises:
            OptionError: if the recording has other knobs than the problem, or values that the
                problem does not list.
        """
        if not self.landscape.sha256:
            return self._indices(problem)
        # Runs of one landscape share them: its hash is of its content, and they depend on no more.
        place = (self.landscape.sha256, problem.name, problem.knobs)
        if place not in _MEMBERS:
            if len(_MEMBERS) == MOST_SHARED:
                _MEMBERS.clear()
            _MEMBERS[place] = self._indices(problem)
        return _MEMBERS[place]

    def _indices(self, problem: Problem) -> NDArray[np.int64]:
        space = KnobSpace(problem.knobs)
        if set(space.names) != set(self.landscape.knob_names):
            expected = f"a recording of the knobs {' '.join(space.names)} of {problem.name}"
            raise OptionError("landscape", expected, " ".join(self.landscape.knob_names))
        try:
            found = _indices(space, self.landscape)
        except ValueError as error:
            expected = f"a recording of knob values of {problem.name}"
            raise OptionError("landscape", expected, str(error)) from None
        found.setflags(write=False)
        return found

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """The problem's unscheduled configuration if it was recorded, else the file's default, else
        the median one that ran.
        """
        own: KnobPayload = tuple(sorted(problem.unscheduled))
        if own in self.landscape.by_knobs:
            return own
        return self.landscape.default or self.landscape.median_entry.knobs

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

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """Recorded medians in ns; NaN for what failed, is wrong or is too fast to be true."""
        return np.array([self._true_ns(self._entry(c)) for c in candidates])

    def _true_ns(self, entry: Entry) -> float:
        wrong = entry.max_error is not None and entry.max_error > self.problem.error_model.bound
        too_fast = bool(entry.samples_ns) and min(entry.samples_ns) < self._floor
        return math.nan if wrong or too_fast else entry.true_ns

    def _entry(self, candidate: Candidate) -> Entry:
        entry = self.landscape.by_knobs.get(candidate.payload)  # type: ignore[arg-type]
        if entry is None:
            raise ValueError(f"{candidate}: {self.members_reason}")
        return entry

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request."""
        return [self._judge(request) for request in requests]

    def _judge(self, request: Request) -> Verdict:
        entry = self._entry(request.candidate)
        facts = (*entry.facts, *entry.costs_s)
        if entry.error is not None and entry.failure is not None:
            code, evidence = code_of(entry.error), f"recorded: {printable(entry.error)}"
            return Verdict(_STATUSES[entry.failure], code, evidence=evidence, facts=facts)
        bound = self.problem.error_model.bound
        if entry.max_error is not None and entry.max_error > bound:
            return Verdict(
                Status.WRONG,
                "error_bound",
                evidence=f"relative error {entry.max_error:.3g}, at most {bound:.3g}",
                max_error=entry.max_error,
                facts=facts,
            )
        confirm = request.stage is Stage.CONFIRM
        samples = entry.samples_ns if confirm else self._samples(request, entry)
        if min(samples) < self._floor:
            return Verdict(
                Status.TOO_FAST,
                "below_roofline",
                evidence=f"{min(samples):.0f} ns, below the {self._floor:.0f} ns of the roofline "
                "of its device",
                facts=facts,
            )
        measurements = tuple(self._measure(samples, a, exact=not confirm) for a in request.against)
        passed = Verdict(
            Status.OK,
            max_error=entry.max_error,
            measurements=measurements,
            facts=facts,
            floors_ns=self._floors,
        )
        return claimed(passed, Terms(request.alpha)) if confirm else passed

    def _samples(self, request: Request, entry: Entry) -> tuple[float, ...]:
        """As many recorded samples as pairs are asked for; a screen may end early."""
        samples, key, first = entry.samples_ns, request.candidate.key, request.first_repeat
        # A screen counts down, so that no other stage draws what it drew.
        step = -1 if request.stage is Stage.SCREEN else 1

        def sample(number: int) -> float:
            (u,) = keyed_uniforms(self._seed, key, first + step * number, 1)
            return samples[int(u * len(samples))]

        return taken(request, sample)

    def _measure(
        self, samples: tuple[float, ...], against: Reference, *, exact: bool
    ) -> Measurement:
        if against.role is Role.LIBRARY or against.candidate.language is Language.LIBRARY:
            reference = self.landscape.library_ns
            true = float(np.median(reference))
        else:
            entry = self._entry(against.candidate)
            reference, true = entry.samples_ns, entry.true_ns
        if not reference:
            raise ValueError(f"reference {against.candidate}: it failed when it was recorded")
        return Measurement(
            workload=self._workload,
            role=against.role,
            reference_key=against.candidate.key,
            samples=Unpaired(samples, (true,), True) if exact else Unpaired(samples, reference),
            clock="recorded",
            cache_state=CacheState.COLD,
            evidence=Evidence.RECORDED,
            machine=printable(self.landscape.device) or "unknown",
        )
