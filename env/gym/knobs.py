"""Knob search as a Gymnasium environment: a step moves one knob one value up or down, and the judge
pays.

Observation: ``knobs`` (the level of each knob) and ``remaining`` (steps left). Actions:
``Discrete(2k)``, 2i is knob i one value down, 2i + 1 one up; ``info["action_mask"]`` marks those
whose neighbour is valid. An illegal action changes nothing but the budget, and ``info["reason"]``
says why it is illegal. An episode is truncated after ``budget`` steps and never terminates.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kernelwright.env.gym.judging import Judging
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.protocols import Evaluator
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate

Observation = dict[str, Any]
STARTS = ("baseline", "random")
MAX_BUDGET = 2**31 - 1


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


@dataclass(frozen=True, slots=True)
class Provenance:
    """What an environment was made from: arguments that make it again anywhere, and file hashes."""

    kwargs: Mapping[str, Any]
    hashes: Mapping[str, str]


class KernelEnv(gymnasium.Env[Observation, np.int64]):
    """One search as one episode.

    Args:
        space: the knob space to move in.
        evaluator: the judge; the same one that campaigns use.
        baseline: what speedups are measured against, and where an episode starts.
        budget: steps in an episode.
        start: ``baseline`` or ``random``, for resets that do not say.
        rewards: the reward table.
        provenance: what a saved episode says of the environment.

    The reward depends on the best objective so far, which is in ``info["best"]`` and not in the
    observation.
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
        if not 1 <= operator.index(budget) <= MAX_BUDGET:
            raise ValueError(f"budget: expected 1 to {MAX_BUDGET}, found {budget}")
        start_is_random({}, start)
        self.budget = int(budget)
        self.provenance = provenance
        self._start = start
        self._judging = Judging(space, evaluator, baseline, rewards or RewardModel())
        self.action_space = spaces.Discrete(2 * len(space.knobs))
        self.observation_space = observation_space(space, self.budget)
        self._index: int | None = None
        self._best = 0.0
        self._taken = 0
        self._episode: dict[str, Any] = {}

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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode where ``options={"start": ...}`` or the environment's own start says."""
        super().reset(seed=seed)
        at_random = start_is_random(options, self._start)
        # Every episode has a seed of its own, so it can be saved and replayed whatever came before.
        episode_seed = seed if seed is not None else int(self.np_random.integers(2**31))
        rng = np.random.default_rng(episode_seed)
        self._index = self._judging.starts(rng, at_random=at_random)
        self._best = float(self._judging.objective[self._index])
        self._taken = 0
        self._episode = {"seed": episode_seed, "options": dict(options or {})}
        self._episode |= {"actions": [], "rewards": []}
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move one knob one value; see the module's docstring.

        Raises:
            gymnasium.error.ResetNeeded: before a reset, or after truncation.
            gymnasium.error.InvalidAction: if the action is not in the action space.
            BrokenJudgeError: if the judge itself failed.
        """
        here = self._here()
        if self._taken == self.budget:
            raise gymnasium.error.ResetNeeded("the episode was truncated: expected reset()")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"expected an action in {self.action_space}, found {action!r}"
            )
        judging, number = self._judging, int(action)
        self._taken += 1
        reason = None
        if judging.masks[here, number]:
            self._index = here + int(judging.moves[number])
            reward = self._arrive(self._index)
        else:
            reason = judging.illegal_reason(here, number)
            reward = judging.rewards.illegal
        self._episode["actions"].append(number)
        self._episode["rewards"].append(reward)
        info = self._info() | ({"reason": reason} if reason else {})
        return self._observation(), reward, False, self._taken == self.budget, info

    def _arrive(self, index: int) -> float:
        judging = self._judging
        judging.learn(np.array([index]))
        objective = float(judging.objective[index])
        if np.isnan(objective):
            return float(judging.failure[index])
        reward = judging.rewards.of_improvement(objective, self._best)
        self._best = max(self._best, objective)
        return reward

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions of this state (the name that maskable policies look for)."""
        legal: NDArray[np.bool_] = self._judging.masks[self._here()].astype(bool)
        return legal

    def _observation(self) -> Observation:
        levels = self._judging.levels[self._here()].copy()
        return {"knobs": levels, "remaining": np.int64(self.budget - self._taken)}

    def _info(self) -> dict[str, Any]:
        index = self._here()
        verdict = self._judging.verdict(index)
        objective = float(self._judging.objective[index])
        info: dict[str, Any] = {
            "action_mask": self._judging.masks[index].copy(),
            "status": verdict.status.value,
            "best": self._best,
        }
        # A state that failed has no objective.
        return info if np.isnan(objective) else info | {"objective": objective}

    def outcome(self) -> dict[str, Any]:
        """Where the episode stands: what a replay must arrive at."""
        return {
            "candidate": self.candidate.key,
            "best": self._best,
            "remaining": self.budget - self._taken,
        }

    def save(self, path: str | Path) -> None:
        """Write the episode so far: id, arguments, file hashes, seed, options, actions, rewards and
        outcome; `validate` replays it.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            ValueError: if the environment was not made by ``gymnasium.make``, so that there is no
                id to write.
        """
        self._here()
        if self.spec is None:
            raise ValueError("expected an environment made by gymnasium.make, found no id")
        origin = self.provenance or Provenance({}, {})
        episode = {
            "id": self.spec.id,
            "kwargs": {**self.spec.kwargs, **origin.kwargs},
            "hashes": dict(origin.hashes),
            **self._episode,
            "outcome": self.outcome(),
        }
        text = json.dumps(episode, indent=1, default=_plain)
        Path(path).write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """NumPy numbers as JSON's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"expected plain data, found {value!r}")
