"""A hybrid: the model proposes a few seeds, then a classical driver searches the space. Where
candidates are C, which a classical driver cannot write, see `templates.py`.

Seeds are put to the test. The classical driver first makes ``test`` proposals of its own, without
knowing the seeds. Those seeds that are faster than all of these are told to it and it goes on from
there; the others are dropped, it never hears of them. So where all seeds are dropped it proposes
just what it would have proposed alone, later by as many trials as there were seeds. Where it
proposes what was a seed, nothing is judged twice: it is told the seed's trial.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.agent import agent
from kernelwright.agents.chat import digest
from kernelwright.agents.desk import Desk
from kernelwright.agents.drivers.templates import Templates
from kernelwright.agents.talk import Turn, Useless
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob, Language, Problem, Proposal
from kernelwright.search.driver import Driver
from kernelwright.search.drivers import DRIVERS
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
            int, Field(ge=1, description="proposals of the model; of C, in each round")
        ] = 8,
        test: Annotated[
            int, Field(ge=1, description="the driver's own proposals that seeds must beat")
        ] = 8,
        tuning: Annotated[
            int, Field(ge=1, description="of C: trials of a template's macros in a round")
        ] = 16,
    ) -> None:
        self._desk = desk
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
            self._way = Seeded(desk, driver, seeds=seeds, test=test, name=name)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._way.stopped

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
    """Seeds, their test, and what goes on from there; see the module.

    Args:
        desk: where the model is asked.
        driver: the classical one.
        seeds: how many the model proposes.
        test: the driver's own proposals that they must beat.
        name: the proposer of what the driver proposes.
    """

    def __init__(
        self,
        desk: Desk,
        driver: Driver,
        *,
        seeds: int,
        test: int,
        name: str,
    ) -> None:
        self._desk, self._polisher, self._name = desk, driver, name
        self._left, self._test = seeds, test
        self._sown: set[str] = set()  # keys of seeds
        self._seeds: list[Trial] = []  # told, and not decided about
        self._own: list[Trial] = []  # of the polisher before the decision
        self._asked: list[str] = []  # keys of the polisher's proposals that it was not told of

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose; a model that is at its end leaves the polisher."""
        return self._polisher.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Seeds first, then what the polisher proposes and was no seed."""
        desk = self._desk
        if self._left and desk.stopped is None:
            found = desk.talk.proposals(min(n, self._left), self._fresh, self._mend)
            self._left -= len(found)
            self._sown |= {proposal.candidate.key for proposal in found}
            if found:
                return found
        while True:
            asked = self._polisher.ask(n)
            self._asked += [proposal.candidate.key for proposal in asked]
            new = [p for p in asked if p.candidate.key not in desk.trials]
            if new or not asked:
                return [Proposal(p.candidate, self._name, p.parents) for p in new]
            self._settle()

    def tell(self, trials: Sequence[Trial]) -> None:
        """The polisher is told of its own proposals, in its own order."""
        strangers = []
        for trial in trials:
            key = trial.candidate.key
            if key in self._sown:
                self._seeds.append(trial)
            elif key not in self._asked:
                strangers.append(trial)
        if strangers:  # a baseline, or what another proposer tried
            self._polisher.tell(strangers)
        # Trials come in the order of proposals: what was passed over is not coming any more.
        new = {trial.candidate.key for trial in trials}
        last = max((i for i, key in enumerate(self._asked) if key in new), default=-1)
        self._asked = [
            key for i, key in enumerate(self._asked) if i > last or key in self._desk.trials
        ]
        self._settle()
        self._decide()

    def _settle(self) -> None:
        """Tell the polisher what is known of its proposals, up to the first that is not."""
        known = []
        while self._asked and (trial := self._desk.trials.get(self._asked[0])) is not None:
            known.append(trial)
            self._asked.pop(0)
        if known:
            self._own += known
            self._polisher.tell(known)

    def _decide(self) -> None:
        """Once the polisher has had its test, tell it the seeds that are faster than all its own,
        and drop the others.
        """
        if not self._seeds or len(self._own) < self._test:
            return
        heights = [t.objective for t in self._own if t.objective is not None]
        best = max(heights, default=None)
        told = {trial.candidate.key for trial in self._own}
        kept = [
            seed
            for seed in self._seeds
            if seed.objective is not None
            and (best is None or seed.objective > best)
            and seed.candidate.key not in told
        ]
        keys = [seed.candidate.key for seed in kept]
        dropped = len(self._seeds) - len(kept)
        self._desk.journal.record(event(SEEDS, self._desk.talk.asks, kept=keys, dropped=dropped))
        self._seeds = []
        if kept:
            self._polisher.tell(kept)

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
