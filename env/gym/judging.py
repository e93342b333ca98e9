"""What single and batched environments share: the space's moves as tables, and the judge's answers
by flat index.

A deterministic judge is asked once about a configuration; its answer, a function of (seed,
candidate key), is remembered. A judge that measures is asked every time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.gym.reward import BrokenJudgeError, RewardModel
from kernelwright.env.objective import log2_speedup
from kernelwright.env.protocols import Evaluator
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate, Reference, Request, Role, Stage, Status, Verdict

# How often a random start is drawn again because its configuration failed.
START_TRIES = 1000


@dataclass(frozen=True, slots=True)
class Standing:
    """What a verdict is worth: the objective (NaN if the candidate failed), and what failing
    earns.
    """

    verdict: Verdict
    objective: float
    failure: float

    @property
    def passed(self) -> bool:
        """Whether there is an objective."""
        return not math.isnan(self.objective)


def standing(verdict: Verdict, rewards: RewardModel) -> Standing:
    """A verdict with its worth.

    Raises:
        BrokenJudgeError: if the judge broke.
    """
    if not verdict.status.passed:
        return Standing(verdict, math.nan, rewards.of_failure(verdict.status))
    objective = log2_speedup(verdict)
    return Standing(verdict, math.nan if objective is None else objective, 0.0)


class Judging:
    """A knob space, its moves and its judged configurations.

    Action 2i steps knob i one value down, 2i + 1 one up.
    """

    def __init__(
        self, space: KnobSpace, evaluator: Evaluator, baseline: Candidate, rewards: RewardModel
    ) -> None:
        self.space, self.evaluator, self.rewards = space, evaluator, rewards
        self.baseline = baseline
        self._against = (Reference(Role.BASELINE, baseline),)
        self._standings: dict[int, Standing] = {}
        size, knobs = space.combinations, len(space.knobs)
        self.levels = space.levels.astype(np.int64)
        strides = np.array([space.flat([int(j == i) for j in range(knobs)]) for i in range(knobs)])
        self.moves = np.empty(2 * knobs, dtype=np.int64)
        self.moves[0::2], self.moves[1::2] = -strides, strides
        self.masks = np.zeros((size, 2 * knobs), dtype=np.int8)
        for i in range(knobs):
            down = self.levels[:, i] > 0
            up = self.levels[:, i] < space.shape[i] - 1
            self.masks[down, 2 * i] = space.is_valid[np.flatnonzero(down) - strides[i]]
            self.masks[up, 2 * i + 1] = space.is_valid[np.flatnonzero(up) + strides[i]]
        # By flat index: the objective (NaN: failed or not judged yet), the reward of a failure, and
        # whether it was judged.
        self.objective = np.full(size, np.nan)
        self.failure = np.zeros(size)
        self.judged = np.zeros(size, dtype=bool)
        self.status = np.full(size, None, dtype=object)
        self._reasons: dict[tuple[int, int], str] = {}

    def learn(self, indices: NDArray[np.int64]) -> None:
        """Have configurations judged that are not, or all of them where answers may not be kept."""
        wanted = np.unique(indices)
        if self.evaluator.deterministic:
            wanted = wanted[~self.judged[wanted]]
        if not len(wanted):
            return
        chosen: list[int] = wanted.tolist()
        requests = [Request(self.space.candidate(i), Stage.SCREEN, self._against) for i in chosen]
        for index, verdict in zip(chosen, self.evaluator.evaluate(requests), strict=True):
            found = self._standings[index] = standing(verdict, self.rewards)
            self.judged[index] = True
            self.status[index] = verdict.status.value
            self.objective[index], self.failure[index] = found.objective, found.failure

    def standing(self, index: int) -> Standing:
        """The latest standing of a configuration that was judged."""
        return self._standings[index]

    def starts(self, rng: np.random.Generator, *, at_random: bool) -> int:
        """The index an episode starts at: the baseline, or a random valid configuration that
        passes.

        Raises:
            BrokenJudgeError: if the baseline fails, or no passing configuration is found.
        """
        for _ in range(START_TRIES):
            index = (
                int(self.space.valid[rng.integers(len(self.space.valid))])
                if at_random
                else self.space.index(self.baseline)
            )
            self.learn(np.array([index]))
            if not np.isnan(self.objective[index]):
                return index
            if not at_random:
                break
        status = self.standing(index).verdict.status if self.judged[index] else Status.BROKEN
        raise BrokenJudgeError(f"no start: {self.space.candidate(index)} is {status}")

    def illegal_reason(self, index: int, action: int) -> str:
        """Why a masked action may not be taken."""
        known = self._reasons.get((index, action))
        if known is None:
            known = self._reasons[index, action] = self._explain(index, action)
        return known

    def _explain(self, index: int, action: int) -> str:
        knob, up = divmod(action, 2)
        level, values = int(self.levels[index, knob]), self.space.knobs[knob].values
        if not 0 <= level + (1 if up else -1) < len(values):
            end = "greatest" if up else "least"
            return f"{self.space.names[knob]}={values[level]} is already the {end} value"
        broken = self.space.violations(index + int(self.moves[action]))
        return "; ".join(violation.reason for violation in broken)
