"""What every search environment is: an episode over a judge, its rewards, and its record on disk.

A legal action changes the state and earns what the new state is worth; an illegal one changes
nothing but the budget, and ``info["reason"]`` says why it is illegal. ``info["action_mask"]`` marks
the legal actions. An episode is truncated after ``budget`` steps and never terminates. The reward
depends on the best objective so far, which is in ``info["best"]`` and not in the observation.
"""

from __future__ import annotations

import json
import operator
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from kernelwright.env.gym.judging import Standing
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.types import Candidate

Observation = dict[str, Any]
MAX_BUDGET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Provenance:
    """What an environment was made from: arguments that make it again anywhere, and file hashes."""

    kwargs: Mapping[str, Any]
    hashes: Mapping[str, str]


def checked_budget(budget: int) -> int:
    """A budget that an episode may have.

    Raises:
        ValueError: if it is too small or too large.
    """
    if not 1 <= operator.index(budget) <= MAX_BUDGET:
        raise ValueError(f"budget: expected 1 to {MAX_BUDGET}, found {budget}")
    return int(budget)


class SearchEnv(gymnasium.Env[Observation, np.int64]):
    """One search as one episode; a subclass says what states and actions are.

    Args:
        budget: steps in an episode.
        rewards: the reward table.
        provenance: what a saved episode says of the environment.
    """

    def __init__(
        self, *, budget: int, rewards: RewardModel | None, provenance: Provenance | None
    ) -> None:
        self.budget = checked_budget(budget)
        self.provenance = provenance
        self._rewards = rewards or RewardModel()
        self._best = 0.0
        self._taken = 0
        self._episode: dict[str, Any] = {}

    @property
    @abstractmethod
    def candidate(self) -> Candidate:
        """The candidate that the environment is at.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """

    @abstractmethod
    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options of a reset with a ValueError, before anything is drawn."""

    @abstractmethod
    def _begin(self, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Go to a start state and have it judged."""

    @abstractmethod
    def _legal(self) -> NDArray[np.int8]:
        """The mask of the legal actions here."""

    @abstractmethod
    def _illegal_reason(self, action: int) -> str:
        """Why an action is not legal here."""

    @abstractmethod
    def _move(self, action: int) -> None:
        """Take a legal action, and have the state judged that it leads to."""

    @abstractmethod
    def _standing(self) -> Standing:
        """What the judge said of this state."""

    @abstractmethod
    def _view(self) -> Observation:
        """The observation, without the steps that are left."""

    def _check_started(self) -> None:
        if not self._episode:
            raise gymnasium.error.ResetNeeded("expected reset() before this call")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; the environment says which options it knows."""
        super().reset(seed=seed)
        given = dict(options or {})
        self._check_options(given)
        # Every episode has a seed of its own, so it can be saved and replayed whatever came before.
        episode_seed = seed if seed is not None else int(self.np_random.integers(2**31))
        self._begin(np.random.default_rng(episode_seed), given)
        self._best = self._standing().objective
        self._taken = 0
        self._episode = {"seed": episode_seed, "options": given, "actions": [], "rewards": []}
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one action; see the module's docstring.

        Raises:
            gymnasium.error.ResetNeeded: before a reset, or after truncation.
            gymnasium.error.InvalidAction: if the action is not in the action space.
            BrokenJudgeError: if the judge itself failed.
        """
        self._check_started()
        if self._taken == self.budget:
            raise gymnasium.error.ResetNeeded("the episode was truncated: expected reset()")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"expected an action in {self.action_space}, found {action!r}"
            )
        number = int(action)
        self._taken += 1
        reason = None
        if self._legal()[number]:
            self._move(number)
            reward = self._earned()
        else:
            reason = self._illegal_reason(number)
            reward = self._rewards.illegal
        self._episode["actions"].append(number)
        self._episode["rewards"].append(reward)
        info = self._info() | ({"reason": reason} if reason else {})
        return self._observation(), reward, False, self._taken == self.budget, info

    def _earned(self) -> float:
        standing = self._standing()
        if not standing.passed:
            return standing.failure
        reward = self._rewards.of_improvement(standing.objective, self._best)
        self._best = max(self._best, standing.objective)
        return reward

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions of this state (the name that maskable policies look for)."""
        self._check_started()
        return self._legal().astype(bool)

    def _observation(self) -> Observation:
        return {**self._view(), "remaining": np.int64(self.budget - self._taken)}

    def _info(self) -> dict[str, Any]:
        standing = self._standing()
        info: dict[str, Any] = {
            "action_mask": self._legal().copy(),
            "status": standing.verdict.status.value,
            "best": self._best,
        }
        # A state that failed has no objective.
        return info | {"objective": standing.objective} if standing.passed else info

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
        self._check_started()
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
