"""Knob search as a Gymnasium environment: a step moves one knob one value up or down, and the judge
pays.

Observation: ``knobs`` (the level of each knob) and ``remaining`` (steps left). Actions:
``Discrete(2k)``, 2i is knob i one value down, 2i + 1 one up; legal are those whose neighbour is
valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kernelwright.env.gym.environment import Observation, Provenance, SearchEnv
from kernelwright.env.gym.judging import Judging, Standing
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.protocols import Evaluator
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate

STARTS = ("baseline", "random")


def observation_space(space: KnobSpace, budget: int) -> spaces.Dict:
    """Levels of the knobs, and the steps that are left."""
    return spaces.Dict(
        {
            "knobs": spaces.MultiDiscrete(np.array(space.shape)),
            "remaining": spaces.Discrete(budget + 1),
        }
    )


def start_is_random(options: Mapping[str, Any] | None, default: str) -> bool:
    """Whether an episode starts at random: as ``options={"start": ...}`` says, else ``default``.

    Raises:
        ValueError: if there is another option, or another start.
    """
    given = dict(options or {})
    start = given.pop("start", default)
    if given or start not in STARTS:
        expected = f'options {{"start": one of {", ".join(STARTS)}}}'
        raise ValueError(f"expected {expected}, found {options!r} (default {default!r})")
    return bool(start == "random")


class KernelEnv(SearchEnv):
    """One search over knobs as one episode.

    Args:
        space: the knob space to move in.
        evaluator: the judge; the same one that campaigns use.
        baseline: what speedups are measured against, and where an episode starts.
        budget: steps in an episode.
        start: ``baseline`` or ``random``, for resets whose options do not say.
        rewards: the reward table.
        provenance: what a saved episode says of the environment.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        space: KnobSpace,
        evaluator: Evaluator,
        baseline: Candidate,
        *,
        budget: int = 64,
        start: str = "baseline",
        rewards: RewardModel | None = None,
        provenance: Provenance | None = None,
    ) -> None:
        super().__init__(budget=budget, rewards=rewards, provenance=provenance)
        start_is_random({}, start)
        self._start = start
        self._judging = Judging(space, evaluator, baseline, self._rewards)
        self.action_space = spaces.Discrete(2 * len(space.knobs))
        self.observation_space = observation_space(space, self.budget)
        self._index: int | None = None

    @property
    def candidate(self) -> Candidate:
        """The configuration the environment is at.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        return self._judging.space.candidate(self._here())

    def _here(self) -> int:
        if self._index is None:
            raise gymnasium.error.ResetNeeded("expected reset() before this call")
        return self._index

    def _check_options(self, options: Mapping[str, Any]) -> None:
        start_is_random(options, self._start)

    def _begin(self, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        at_random = start_is_random(options, self._start)
        self._index = self._judging.starts(rng, at_random=at_random)

    def _legal(self) -> NDArray[np.int8]:
        legal: NDArray[np.int8] = self._judging.masks[self._here()]
        return legal

    def _illegal_reason(self, action: int) -> str:
        return self._judging.illegal_reason(self._here(), action)

    def _move(self, action: int) -> None:
        self._index = self._here() + int(self._judging.moves[action])
        self._judging.learn(np.array([self._index]))

    def _standing(self) -> Standing:
        return self._judging.standing(self._here())

    def _view(self) -> Observation:
        return {"knobs": self._judging.levels[self._here()].copy()}
