"""What a target offers beside judging: the rules of its machine, and the candidates that others are
compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Evaluator, Oracle, Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import CacheState, Candidate, Language, Problem, Scalar, Workload

MODELLED_JUDGE_KEYS: Mapping[str, tuple[str, ...] | None] = MappingProxyType(
    {
        "profile": ("basic",),
        "state": ("cold",),
        "confirm.process_pairs": None,
        "confirm.pairs": None,
    }
)
"""`Target.judge_keys` of an analytic model: its data are always cold, no screen is paired, and as
nothing is run there is nobody to suspect.
"""

EARLY_KEYS = ("screen.pairs", "screen.cut", "race.extra")
"""The keys of ``judge`` of a target whose screens are one sample unless it is asked for more, and
may end early, and whose race may have a purse. What a target does nothing about unless it is asked
to, it lists in ``judge_unasked``.
"""


class Roofline(Protocol):
    """A machine's table, as far as it bounds a time."""

    @property
    def name(self) -> str:
        """The machine's name."""
        ...

    def floor_s(self, flops: float, moved_bytes: float) -> float:
        """The least time in s for so many operations and bytes."""
        ...


def roofline_ns(
    device: Roofline | None, problem: Problem, workload: Workload, *, moved: bool = True
) -> float:
    """The least time in ns that a device's roofline allows a workload; 0 if it is not known.
    ``moved`` is whether bytes take time.
    """
    if device is None:
        return 0.0
    moved_bytes = problem.moved_bytes(workload) if moved else 0.0
    return 1e9 * device.floor_s(problem.flops(workload), moved_bytes)


@runtime_checkable
class Bounds(Protocol):
    """A target that knows where operands are when a call starts, and what a bound is made of."""

    def bound_ns(self, workload: Workload, state: CacheState, *, moved: bool = True) -> float:
        """The roofline's least time in ns in this state, 0 where none is known; with ``moved``
        False that of the operations alone.
        """
        ...


@runtime_checkable
class TellsFacts(Protocol):
    """A target that knows beforehand which facts the verdicts of its screens have."""

    @property
    def facts(self) -> tuple[str, ...]:
        """Their names."""
        ...


@runtime_checkable
class TellsNotes(Protocol):
    """A target that stands on a recording, of which not everything may be there."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know of it, a sentence each."""
        ...


def notes_of(target: Target) -> tuple[str, ...]:
    """What a user must know of a target's recording; empty where there is none."""
    return target.notes if isinstance(target, TellsNotes) else ()


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """The least time that a target allows a workload, and what sets it: ``compute`` or ``memory``,
    None where the target does not say.
    """

    workload: str
    floor_ns: float
    limit: str | None


def speed_of_light(
    target: Target, problem: Problem, state: CacheState = CacheState.COLD
) -> tuple[SpeedOfLight, ...]:
    """The bounds of a problem's workloads; empty where one of them has none, for then nothing can
    be said of all.
    """
    found = []
    for workload in problem.workloads:
        if isinstance(target, Bounds):
            floor = target.bound_ns(workload, state)
            alone = target.bound_ns(workload, state, moved=False)
            limit = "compute" if alone >= floor else "memory"
        else:
            floor, limit = target.floor_ns(workload), None
        if not floor:
            return ()
        found.append(SpeedOfLight(workload.label, floor, limit))
    return tuple(found)


class Target(Evaluator, Oracle, Protocol):
    """A judge together with its machine."""

    @property
    def device(self) -> Roofline | None:
        """The device whose roofline holds here; None if it has no table."""
        ...

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What a configuration must satisfy to be launched."""
        ...

    @property
    def languages(self) -> frozenset[Language]:
        """The languages of the candidates that it can judge."""
        ...

    @property
    def members_reason(self) -> str:
        """What is said of a configuration outside `members`."""
        ...

    def members(self, problem: Problem) -> NDArray[np.int64] | None:
        """Flat indices of the only configurations this target knows, or None for all."""
        ...

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """The values of a knob space's default configuration."""
        ...

    def baseline(self, space: Space) -> Candidate:
        """The unscheduled program, which speedups are measured against unless another is named."""
        ...

    @property
    def library(self) -> Candidate | None:
        """The vendor library's kernel for this problem, where its time is known."""
        ...

    @property
    def judge_keys(self) -> Mapping[str, tuple[str, ...] | None]:
        """The keys of ``judge`` that mean something here, with the values they may take (None: any
        that the schema allows).

        A target that is called with ``judging=`` (`Judging` in ``cpu/policy.py``) judges what it
        runs: it is told profile, way of checking and policy by it. A model has ``profile: basic``.
        """
        ...

    @property
    def files(self) -> Mapping[str, str]:
        """SHA-256 of the data files this target stands on, by the name they were asked for."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What this machine lacks to judge with this target."""
        ...


class MakeJudge(Protocol):
    """Makes the judge of a problem, as `evaluators.cpu.target.Cpu` does."""

    def __call__(self, problem: Problem, *, threads: int, flags: tuple[str, ...]) -> Evaluator:
        """A judge that allows a number of threads and compiles with these flags."""
        ...
