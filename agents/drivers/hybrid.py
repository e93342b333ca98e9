"""A hybrid: the model proposes a few seeds while a classical driver searches the space. Where
candidates are C, which a classical driver cannot write, see `templates.py`.

The model is an adviser on probation, as a recording or an analytic model is to `auto`
(`search.drivers.counsel`). It is asked for two seeds at a time, and never for more than half of
what was proposed, so the driver's own start goes on beside them. It goes on, up to ``seeds``, while
its best is not 1.3 times slower than the driver's own best; then it is asked no more.

The driver is told of every seed, good or bad: a trial that was paid for says something about the
space. Where it proposes what is a seed already, nothing is judged twice.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.agent import agent
from kernelwright.agents.chat import digest
from kernelwright.agents.desk import Desk
from kernelwright.agents.drivers.templates import Templates
from kernelwright.agents.talk import Turn, Useless
from kernelwright.agents.usual import Usual
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob, Language, Problem, Proposal
from kernelwright.search.driver import Driver
from kernelwright.search.drivers import DRIVERS
from kernelwright.search.drivers.counsel import TRIED, WORSE
from kernelwright.search.trial import Trial, event

SEEDS = "seeds"
UNFIT = ("listed",)
# Stands for the macros of a template, of which none is known before the model has written it.
TRIAL_SPACE = KnobSpace([Knob("A", (1, 2)), Knob("B", (1, 2))])


@agent("hybrid")
class Hybrid:
    """A model's seeds, polished by a classical driver."""

    def __init__(
        self,
        desk: Desk,
        *,
        polish: Annotated[
            str, Field(description="the driver that goes on, with its default options")
        ] = "auto",
        seeds: Annotated[
            int, Field(ge=1, description="proposals of the model at most; of C, in each round")
        ] = 8,
        tuning: Annotated[
            int, Field(ge=1, description="of C: trials of a template's macros in a round")
        ] = 16,
    ) -> None:
        self._desk, self._seeds = desk, seeds
        space, problem, seed, batch = desk.space, desk.problem, desk.seed, desk.batch
        name = f"hybrid {polish}"

        def make(knobs: Any, salt: object) -> Driver:
            own = int(digest([seed, salt])[:8], 16)
            return polisher(polish, knobs, seed=own, batch=batch, problem=problem)

        self._way: Seeded | Templates
        if space.language is Language.SOURCE:
            polisher(polish, TRIAL_SPACE, seed=seed, batch=batch, problem=problem)
            self._way = Templates(desk, make, seeds=seeds, tuning=tuning, name=name)
        else:
            driver = polisher(polish, space, seed=seed, batch=batch, problem=problem)
            self._way = Seeded(desk, driver, seeds=seeds, name=name)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._way.stopped

    @property
    def usual(self) -> Usual:
        """Half of the proposals are the model's until it has written its seeds; of C it writes all
        but what comes of tuning, which nobody can know.
        """
        if isinstance(self._way, Templates):
            return Usual()
        return Usual(growth=0.2, share=0.5, most=self._seeds)

    def ask(self, n: int) -> list[Proposal]:
        """Proposals of the model first, then of the classical driver.

        Raises:
            BackendError, ReplayMismatch: as `Talk.proposals`.
        """
        return self._way.ask(n)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of proposals."""
        self._desk.tell(trials)
        self._way.tell(trials)


class Seeded:
    """Seeds on probation beside a classical driver; see the module.

    Args:
        desk: where the model is asked.
        driver: the classical one.
        seeds: how many the model proposes at most.
        name: the proposer of what the driver proposes.
    """

    def __init__(
        self,
        desk: Desk,
        driver: Driver,
        *,
        seeds: int,
        name: str,
    ) -> None:
        self._desk, self._polisher, self._name = desk, driver, name
        self._left = seeds
        self._sown: set[str] = set()  # keys of seeds
        self._own: set[str] = set()  # keys of what the polisher proposed beside them
        self._is_waiting = False  # for what became of seeds
        self._best_seed = self._best_own = -math.inf  # objectives

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose; a model that is at its end leaves the polisher."""
        return self._polisher.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Seeds as far as it is the model's turn, then what the polisher proposes and is none."""
        desk = self._desk
        seeds: list[Proposal] = []
        if share := self._share(n):
            seeds = desk.talk.proposals(share, self._fresh, self._mend)
            self._left -= len(seeds)
            self._sown |= {seed.candidate.key for seed in seeds}
            self._is_waiting = bool(seeds)
            if desk.stopped is not None:
                self._end("gave nothing new")
            elif not self._left:
                self._end("all proposed")
        own: list[Proposal] = []
        while len(seeds) < n and not own and (asked := self._polisher.ask(n - len(seeds))):
            own = [
                Proposal(p.candidate, self._name, p.parents)
                for p in asked
                if p.candidate.key not in self._sown
            ]
        for proposal in own if self._left else ():
            self._own.add(proposal.candidate.key)
            desk.memory.propose(proposal.candidate)
        return [*seeds, *own]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Everybody is told of everything."""
        self._is_waiting = False
        for trial in trials if self._left else ():
            height = -math.inf if trial.objective is None else trial.objective
            if trial.candidate.key in self._sown:
                self._best_seed = max(self._best_seed, height)
            elif trial.candidate.key in self._own:
                self._best_own = max(self._best_own, height)
        self._polisher.tell(trials)

    def _share(self, n: int) -> int:
        """For how many seeds the model is asked now."""
        if not self._left or self._is_waiting:
            return 0
        if self._best_seed < self._best_own - WORSE / math.log(2) and self._sown:
            self._end("slower")
            return 0
        half = (len(self._sown) + len(self._own) + n + 1) // 2
        return min(TRIED, n, self._left, max(0, half - len(self._sown)))

    def _end(self, reason: str) -> None:
        """The model is asked no more."""
        self._left = 0
        seeds = len(self._sown)
        self._desk.journal.record(event(SEEDS, self._desk.talk.asks, seeds=seeds, reason=reason))

    def _fresh(self, slot: int) -> Turn:
        desk = self._desk
        candidate, parent = desk.memory.parent(desk.rng(slot), greedy=slot == 0)
        return Turn(desk.page(slot, parent), candidate)

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        return self._desk.mended(turn, useless)


def polisher(name: str, space: Any, *, seed: int, batch: int, problem: Problem) -> Driver:
    """A classical driver with its default options.

    Raises:
        OptionError: if there is none of that name, or it cannot search this space.
    """
    usable = [known for known in DRIVERS if known not in UNFIT]
    if name not in usable:
        raise OptionError("polish", f"one of {', '.join(usable)}", repr(name))
    module, _, attribute = DRIVERS[name].partition(":")
    make = getattr(import_module(module), attribute)
    given = {"problem": problem} if "problem" in inspect.signature(make).parameters else {}
    try:
        driver: Driver = make(space, seed=seed, batch=batch, **given)
    except OptionError as error:
        raise OptionError("polish", error.expected, f"{name} on {error.found}") from None
    return driver
