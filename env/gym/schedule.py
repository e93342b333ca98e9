"""Schedule search as a Gymnasium environment: an episode writes a schedule, one directive a step.

State: a trace of directives over a procedure, empty at the start. Actions: the core list of
``vocabulary.py`` or the wide one of ``actions.py``; an action adds a directive, and `UNDO` takes
the last one back. Legal is what the compiler proves legal. Observation: ``loops`` (a row of
features a loop), ``facts`` (of the whole nest) and ``remaining`` (steps left); ``features.py``
names the columns. With all actions there are ``tensors`` (a row a tensor) and ``events``, too
(``tensors.py``). ``info["trace"]`` is the schedule as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.schedule.memo import schedules_of
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.gym.actions import LISTS, MAX_TENSORS
from kernelwright.env.gym.environment import Observation, Provenance, SearchEnv
from kernelwright.env.gym.features import FACTS, GREATEST, LOOP_FEATURES, facts, loop_table
from kernelwright.env.gym.judging import Standing, standing
from kernelwright.env.gym.reward import BrokenJudgeError, RewardModel
from kernelwright.env.gym.tensors import EVENTS, TENSOR_FEATURES, events, tensor_table
from kernelwright.env.gym.vocabulary import MAX_LOOPS, IllegalActionError, Trace
from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import Candidate, Language, Reference, Request, Role, Stage

# States whose masks, features and verdicts are remembered.
MAX_STATES = 1 << 14
UNSCHEDULED = Candidate(Language.SCHEDULE, ())
RENDER_MODES = ("ansi",)


class ScheduleEnv(SearchEnv):
    """One schedule as one episode.

    Args:
        procedure: what is scheduled.
        evaluator: the judge; the same one that campaigns use.
        baseline: what speedups are measured against.
        budget: steps in an episode.
        actions: the list of actions, ``core`` or ``all``.
        rewards: the reward table.
        provenance: what a saved episode says of the environment.
        render_mode: ``ansi`` makes `render` give the loop nest as text.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES)}  # noqa: RUF012 - as Gymnasium's

    def __init__(
        self,
        procedure: Procedure,
        evaluator: Evaluator,
        baseline: Candidate = UNSCHEDULED,
        *,
        budget: int = 64,
        actions: str = "core",
        rewards: RewardModel | None = None,
        provenance: Provenance | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(budget=budget, rewards=rewards, provenance=provenance)
        if render_mode is not None and render_mode not in RENDER_MODES:
            expected = ", ".join(RENDER_MODES)
            raise ValueError(f"render_mode: expected one of {expected}, found {render_mode!r}")
        if actions not in LISTS:
            raise ValueError(f"actions: expected one of {', '.join(LISTS)}, found {actions!r}")
        self.render_mode = render_mode
        self.actions = LISTS[actions]
        self._is_wide = actions == "all"
        self._schedules = schedules_of(procedure)
        self._evaluator = evaluator
        self._against = (Reference(Role.BASELINE, baseline),)
        self.action_space = spaces.Discrete(self.actions.count)
        shapes = {"loops": (MAX_LOOPS, len(LOOP_FEATURES)), "facts": (len(FACTS),)}
        if self._is_wide:
            shapes |= {"tensors": (MAX_TENSORS, len(TENSOR_FEATURES)), "events": (len(EVENTS),)}
        boxes = {
            name: spaces.Box(0.0, GREATEST, shape, np.float32) for name, shape in shapes.items()
        }
        remaining = spaces.Discrete(self.budget + 1)
        self.observation_space = spaces.Dict({**boxes, "remaining": remaining})
        self._trace: Trace | None = None
        self._judged: Standing | None = None
        self._mask_of: Callable[[Trace], NDArray[np.int8]] = lru_cache(MAX_STATES)(self._mask)
        self._seen: Callable[[Trace], Observation] = lru_cache(MAX_STATES)(self._features)
        keeps = evaluator.deterministic
        self._ask = lru_cache(MAX_STATES)(self._ask_judge) if keeps else self._ask_judge

    @property
    def candidate(self) -> Candidate:
        """The schedule the environment is at.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        return Candidate(Language.SCHEDULE, self._here())

    @property
    def procedure(self) -> Procedure:
        """The procedure after the schedule.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
        """
        return self._schedules.after(self._here())

    def render(self) -> str | None:
        """The loop nest as text, in render mode ``ansi``."""
        return print_procedure(self.procedure) if self.render_mode == "ansi" else None

    def _here(self) -> Trace:
        if self._trace is None:
            raise gymnasium.error.ResetNeeded("expected reset() before this call")
        return self._trace

    def _check_options(self, options: Mapping[str, Any]) -> None:
        if options:
            raise ValueError(f"expected no options, found {dict(options)!r}")

    def _begin(self, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        del rng, options
        found = self._ask(())
        if not found.passed:
            verdict = found.verdict
            raise BrokenJudgeError(
                f"no start: the unscheduled procedure is {verdict.status} ({verdict.evidence})"
            )
        self._trace, self._judged = (), found

    def _legal(self) -> NDArray[np.int8]:
        return self._mask_of(self._here())

    def _illegal_reason(self, action: int) -> str:
        try:
            self.actions.take(self._schedules, self._here(), action)
        except IllegalActionError as error:
            return str(error)
        raise AssertionError(f"action {action} is masked and legal after {self._here()}")

    def _move(self, action: int) -> None:
        after = self.actions.take(self._schedules, self._here(), action)
        self._judged = self._ask(after)
        self._trace = after

    def _standing(self) -> Standing:
        assert self._judged is not None
        return self._judged

    def _view(self) -> Observation:
        return {name: value.copy() for name, value in self._seen(self._here()).items()}

    def _info(self) -> dict[str, Any]:
        return super()._info() | {"trace": print_trace(self._here())}

    def _mask(self, trace: Trace) -> NDArray[np.int8]:
        mask = np.zeros(self.actions.count, dtype=np.int8)
        mask[self.actions.legal(self._schedules, trace)] = 1
        return mask

    def _features(self, trace: Trace) -> Observation:
        procedure = self._schedules.after(trace)
        seen = {
            "loops": loop_table(procedure, MAX_LOOPS),
            "facts": facts(procedure, len(trace)),
        }
        if self._is_wide:
            seen |= {"tensors": tensor_table(procedure, MAX_TENSORS), "events": events(procedure)}
        return seen

    def _ask_judge(self, trace: Trace) -> Standing:
        request = Request(Candidate(Language.SCHEDULE, trace), Stage.SCREEN, self._against)
        (verdict,) = self._evaluator.evaluate([request])
        return standing(verdict, self._rewards)
