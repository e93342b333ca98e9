"""Many episodes at once, as arrays: the same rules as `KernelEnv`, one NumPy operation where that
has one Python step.

Truncated episodes are reset by the next step (Gymnasium's ``NEXT_STEP`` mode, the default of its
own vector environments): that step ignores the action and returns the start state with reward 0. As
there, such a reset has no options: it starts where the environment's ``start`` says.
"""

from __future__ import annotations

import operator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from kernelwright.env.gym.environment import MAX_BUDGET, Observation
from kernelwright.env.gym.judging import Judging
from kernelwright.env.gym.knobs import observation_space, start_is_random
from kernelwright.env.gym.reward import RewardModel
from kernelwright.env.protocols import Evaluator
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate

Actions = NDArray[np.int64]


class VectorKernelEnv(VectorEnv[Observation, Actions, NDArray[Any]]):
    """``num_envs`` searches side by side over one judge; arguments as of `KernelEnv`."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        space: KnobSpace,
        evaluator: Evaluator,
        baseline: Candidate,
        *,
        budget: int = 64,
        start: str = "baseline",
        rewards: RewardModel | None = None,
    ) -> None:
        if num_envs < 1 or not 1 <= operator.index(budget) <= MAX_BUDGET:
            raise ValueError(f"expected num_envs and budget >= 1, found {num_envs} and {budget}")
        start_is_random({}, start)
        self.num_envs, self.budget, self._start = num_envs, int(budget), start
        self._judging = Judging(space, evaluator, baseline, rewards or RewardModel())
        self.single_action_space = gymnasium.spaces.Discrete(2 * len(space.knobs))
        self.single_observation_space = observation_space(space, budget)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._index: NDArray[np.int64] = np.full(num_envs, -1)
        self._best = np.zeros(num_envs)
        self._taken = np.zeros(num_envs, dtype=np.int64)
        self._rngs: list[np.random.Generator] = []

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Start all episodes; environment i is seeded with ``seed + i``, as Gymnasium's own vector
        environments do.
        """
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        at_random = start_is_random(options, self._start)
        which = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        seeds: list[int | None]
        if seed is None or isinstance(seed, int):
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} seeds, found {len(seeds)}")
        if not self._rngs:
            self._rngs = [np.random.default_rng() for _ in range(self.num_envs)]
        for i, given in enumerate(seeds):
            if given is not None:
                self._rngs[i] = gymnasium.utils.seeding.np_random(given)[0]
        # A seeded episode draws its start from the seed itself, later ones from the stream, like
        # `KernelEnv`.
        self._restart(which, seeds, at_random=at_random)
        return self._observation(), self._info(np.zeros(self.num_envs, dtype=bool), None)

    def _restart(
        self,
        which: NDArray[np.int64],
        seeds: list[int | None] | None = None,
        *,
        at_random: bool = False,
    ) -> None:
        judging = self._judging
        for i in which.tolist():
            given = None if seeds is None else seeds[i]
            # The draw is made whether or not it is used, so that streams run as those of
            # `KernelEnv`.
            episode = given if given is not None else int(self._rngs[i].integers(2**31))
            rng = np.random.default_rng(episode) if at_random else self._rngs[i]
            self._index[i] = judging.starts(rng, at_random=at_random)
        self._best[which] = judging.objective[self._index[which]]
        self._taken[which] = 0

    def step(
        self, actions: Actions
    ) -> tuple[Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Move one knob in every environment; those that were truncated start again instead.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            gymnasium.error.InvalidAction: if the actions are not one legal number an environment.
            BrokenJudgeError: if the judge itself failed.
        """
        if self._index[0] < 0:
            raise gymnasium.error.ResetNeeded("expected reset() before step()")
        actions = np.asarray(actions)
        count = len(self._judging.moves)
        if (
            actions.shape != (self.num_envs,)
            or actions.dtype.kind not in "iu"
            or (actions < 0).any()
            or (actions >= count).any()
        ):
            raise gymnasium.error.InvalidAction(
                f"expected {self.num_envs} actions in 0..{count - 1}, found {actions!r}"
            )
        judging = self._judging
        ended = self._taken == self.budget
        legal = judging.masks[self._index, actions].astype(bool) & ~ended
        self._index = np.where(legal, self._index + judging.moves[actions], self._index)
        judging.learn(self._index[legal])
        rewards = np.where(ended, 0.0, judging.rewards.illegal)
        objective = judging.objective[self._index]
        passed = legal & ~np.isnan(objective)
        gain = judging.rewards.scale * np.maximum(0.0, objective - self._best)
        rewards = np.where(passed, gain, np.where(legal, judging.failure[self._index], rewards))
        self._best = np.where(passed, np.maximum(self._best, objective), self._best)
        self._taken += ~ended
        if ended.any():
            at_random = start_is_random({}, self._start)
            self._restart(np.flatnonzero(ended), at_random=at_random)
        truncated = (self._taken == self.budget) & ~ended
        illegal = ~legal & ~ended
        info = self._info(illegal, actions)
        return self._observation(), rewards, np.zeros_like(truncated), truncated, info

    def _observation(self) -> Observation:
        return {"knobs": self._judging.levels[self._index], "remaining": self.budget - self._taken}

    def _info(self, illegal: NDArray[np.bool_], actions: Actions | None) -> dict[str, Any]:
        judging, everyone = self._judging, np.ones(self.num_envs, dtype=bool)
        info: dict[str, Any] = {
            "action_mask": judging.masks[self._index],
            "_action_mask": everyone,
            "status": judging.status[self._index],
            "_status": everyone,
            "objective": judging.objective[self._index],
            "_objective": ~np.isnan(judging.objective[self._index]),
            "best": self._best.copy(),
            "_best": everyone,
        }
        if actions is not None and illegal.any():
            reasons = np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(illegal).tolist():
                reasons[i] = judging.illegal_reason(int(self._index[i]), int(actions[i]))
            info |= {"reason": reasons, "_reason": illegal}
        return info
