"""Templates from a model, tuned by a classical driver: what a hybrid does where candidates are C.

The model is told that a macro may list values worth trying. After each round of its programs, the
fastest that has such macros and was not tuned yet is tuned for some trials; then comes the next
round. A program without such macros is judged like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kernelwright.agents.desk import Desk
from kernelwright.agents.drivers.tunable import Tunable, read_tunable
from kernelwright.agents.talk import Turn, Useless
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.driver import Driver
from kernelwright.search.trial import Trial

# Asks of the tuning driver in a row that give nothing new before a template counts as tuned.
TRIES = 8


@dataclass(slots=True)
class Tuning:
    """A template under way: the driver over its macros, how many trials are left, and the values
    of each program proposed.
    """

    template: Tunable
    key: str
    driver: Driver
    left: int
    values: dict[str, Candidate] = field(default_factory=dict)


class Templates:
    """Rounds of programs by the model, each followed by the tuning of the best template.

    Args:
        desk: where the model is asked.
        make: the driver over the macros of a template, by its space and key.
        seeds: programs of a round.
        tuning: trials of a template.
        name: the proposer of tuned programs.
    """

    def __init__(
        self,
        desk: Desk,
        make: Callable[[KnobSpace, str], Driver],
        *,
        seeds: int,
        tuning: int,
        name: str,
    ) -> None:
        self._desk, self._make, self._name = desk, make, name
        self._seeds, self._most = seeds, tuning
        self._left = seeds
        self._tuned: set[str] = set()
        self._tuning: Tuning | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if self._tuning is not None else self._desk.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Programs of the model, or its best template with other values."""
        if self._tuning is None and self._left <= 0:
            self._left = self._seeds
            self._tuning = self._next()
        if self._tuning is not None:
            found = self._values(n, self._tuning)
            if found:
                return found
            self._tuning = None
        out = self._desk.talk.proposals(min(n, self._left), self._fresh, self._mend)
        self._left -= len(out)
        return out

    def tell(self, trials: Sequence[Trial]) -> None:
        """The driver is told of its programs by their values."""
        if self._tuning is None:
            return
        known = self._tuning.values
        told = [
            replace(trial, candidate=known[trial.candidate.key])
            for trial in trials
            if trial.candidate.key in known
        ]
        if told:
            self._tuning.driver.tell(told)

    def _next(self) -> Tuning | None:
        """The fastest template that was not tuned."""
        passed = [t for t in self._desk.trials.values() if t.objective is not None]
        for trial in sorted(passed, key=lambda t: (-(t.objective or 0.0), t.number)):
            key = trial.candidate.key
            if key in self._tuned:
                continue
            template = read_tunable(trial.candidate, self._desk.space)
            self._tuned.add(key)
            if template is not None:
                space = template.space
                driver = self._make(space, key)
                if space.default is not None:
                    driver.tell([replace(trial, candidate=space.default)])
                return Tuning(template, key, driver, self._most)
        return None

    def _values(self, n: int, tuning: Tuning) -> list[Proposal]:
        """New programs of a template; none if it has had its trials, or has no more."""
        out: list[Proposal] = []
        for _ in range(TRIES):
            asked = tuning.driver.ask(min(n, tuning.left)) if tuning.left else ()
            for proposal in asked:
                program = tuning.template.program(proposal.candidate.knobs)
                self._tuned.add(program.key)
                if program in self._desk.memory or self._desk.space.check(program):
                    continue
                tuning.values[program.key] = proposal.candidate
                tuning.left -= 1
                self._desk.memory.propose(program)
                out.append(Proposal(program, self._name, (tuning.key,)))
            if out or not asked:
                break
        return out

    def _fresh(self, slot: int) -> Turn:
        desk = self._desk
        candidate, parent = desk.memory.parent(desk.rng(slot), greedy=slot == 0)
        return Turn(desk.page(slot, parent, desk.text("tunables")), candidate)

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        return self._desk.mended(turn, useless)
