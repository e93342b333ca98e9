"""Rewards: improvement over the best so far, and what failures cost.

With b the best objective so far (it starts as the start state's) and x the objective of the new
state: a passing state earns max(0, x − b), then b = max(b, x). An illegal move earns 0, a failure
costs, a cheat costs more, an unstable host earns 0, and a broken judge raises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.env.types import Status

FAILED = frozenset(
    {Status.WRONG, Status.CRASHED, Status.TIMEOUT, Status.BUILD_ERROR, Status.OVER_LIMIT}
)
CHEATED = frozenset({Status.REJECTED, Status.TOO_FAST})


class BrokenJudgeError(RuntimeError):
    """The judge itself failed; no reward can be given."""


@dataclass(frozen=True, slots=True)
class RewardModel:
    """The reward table. Penalties are rewards, so they are at most 0."""

    illegal: float = 0.0
    failed: float = -0.25
    cheated: float = -2.0
    unstable: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("illegal", "failed", "cheated", "unstable"):
            if not -math.inf < getattr(self, name) <= 0:
                raise ValueError(
                    f"RewardModel.{name}: expected at most 0, found {getattr(self, name)}"
                )
        if not 0 < self.scale < math.inf:
            raise ValueError(f"RewardModel.scale: expected above 0, found {self.scale}")

    def of_failure(self, status: Status) -> float:
        """The reward of a state that did not pass.

        Raises:
            BrokenJudgeError: if the judge broke.
            ValueError: if the status is one of passing.
        """
        if status in FAILED:
            return self.failed
        if status in CHEATED:
            return self.cheated
        if status is Status.UNSTABLE:
            return self.unstable
        if status is Status.BROKEN:
            raise BrokenJudgeError("the judge returned 'broken'")
        raise ValueError(f"expected a status of failure, found {status}")

    def of_improvement(self, objective: float, best: float) -> float:
        """The reward of a passing state over the best so far."""
        return self.scale * max(0.0, objective - best)
