"""What a campaign records: trials (one a candidate) and events (everything else that happened, in
order).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from kernelwright.env.types import Candidate, Stage, Status, Verdict

# The kind of the event of a paid question to a model.
MODEL_CALL = "model_call"
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate and what judges said of it, by stage in the order of stages.

    ``objective`` is the estimated log2 speedup over the baseline, None if the candidate failed.
    ``ask`` is the number of the driver's ask that proposed it.

    A race comes in rounds, each with a verdict; the other stages have one.

    Raises:
        ValueError: if there is no verdict, another stage stands twice, or the objective disagrees
            with the first verdict's status.
    """

    number: int
    candidate: Candidate
    verdicts: tuple[tuple[Stage, Verdict], ...]
    objective: float | None
    proposer: str
    parents: tuple[str, ...]
    seed: int
    ask: int
    tokens: int = 0
    usd: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError(f"Trial.number: expected >= 0, found {self.number}")
        stages = [Stage(stage) for stage, _ in self.verdicts]
        once = [stage for stage in stages if stage is not Stage.RACE]
        if not stages or len(set(once)) != len(once):
            raise ValueError(f"Trial.verdicts: expected one verdict a stage, found {stages}")
        first = self.verdicts[0][1]
        if first.status.passed != (self.objective is not None):
            raise ValueError(f"Trial.objective: found {self.objective} for status {first.status}")
        if self.objective is not None and not math.isfinite(self.objective):
            raise ValueError(f"Trial.objective: expected a finite number, found {self.objective}")

    def verdict(self, stage: Stage) -> Verdict | None:
        """The verdict of a stage, if it was reached; of a race that of its first round."""
        return next((v for s, v in self.verdicts if s == stage), None)

    @property
    def status(self) -> Status:
        """The status of the latest verdict; of one that failed if there is any, for what failed
        once is not believed again.
        """
        failed = (v.status for _, v in self.verdicts if not v.status.passed)
        return next((s for s in failed if s is not Status.UNSTABLE), self.verdicts[-1][1].status)

    @property
    def measured(self) -> Verdict | None:
        """The latest verdict with samples, None if there is none."""
        return next((v for _, v in reversed(self.verdicts) if v.measurements), None)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened and is not a trial: a refused or repeated proposal, a model call, a
    stop.

    (``ask``, ``slot``, ``kind``) identifies it, so a resumed campaign that comes by again records
    it once. ``payload`` is canonical JSON.
    """

    kind: str
    ask: int
    slot: int
    payload: str
    tokens: int = 0
    usd: float = 0.0

    @property
    def data(self) -> dict[str, Any]:
        """The payload as a mapping."""
        loaded: dict[str, Any] = json.loads(self.payload)
        return loaded


def event(kind: str, ask: int, slot: int = 0, **data: object) -> Event:
    """An event with its payload made canonical."""
    return Event(kind, ask, slot, _CANONICAL.encode(data))
