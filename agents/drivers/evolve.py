"""Evolution by a model: islands, inspirations, mutation, and crossover of strategies.

A proposal belongs to an island and has a parent there. Beside the parent the prompt shows other
good programs, half of them the best, half of them unlike the parent. A share of the proposals has
two parents: first the model writes a plan that joins what is good in both, then the code for it, so
that ideas are crossed rather than lines (as in cuPilot, arXiv 2512.16465). Instructions may
compete, too (`instructions.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.drivers.instructions import Instructions
from kernelwright.agents.drivers.islands import Islands
from kernelwright.agents.marks import PLAN
from kernelwright.agents.talk import Draft, Idea, Reply, Said, Turn
from kernelwright.agents.usual import Usual, growth
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.trial import Trial


@agent("evolve", without=("parents",))
class Evolve:
    """Islands of programs whose mutations and crossovers a model writes."""

    def __init__(
        self,
        desk: Desk,
        *,
        islands: Annotated[int, Field(ge=1, le=32, description="populations apart")] = 3,
        population: Annotated[
            int, Field(ge=1, le=100, description="trials that an island keeps as parents")
        ] = 6,
        migration: Annotated[
            int, Field(ge=0, description="trials between two exchanges of the best; 0 is never")
        ] = 16,
        crossover: Annotated[
            float, Field(ge=0, le=1, description="share of proposals with two parents")
        ] = 0.25,
        inspirations: Annotated[
            int, Field(ge=0, le=10, description="other good programs that a prompt shows")
        ] = 2,
        instructions: Annotated[
            int, Field(ge=0, le=6, description="instructions that compete; 0 is none")
        ] = 0,
    ) -> None:
        self._desk, self._count = desk, islands
        self._crossover, self._shown = crossover, inspirations
        self._islands = Islands(islands, population, migration)
        self._instructions = Instructions(instructions) if instructions else None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    @property
    def usual(self) -> Usual:
        """Some proposals need a plan first; not those of an island without two parents."""
        longer = growth(self._desk.options.history, self._shown)
        return Usual(others=0.75 * self._crossover, growth=longer)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Trials join their islands."""
        self._desk.tell(trials)
        for trial in trials:
            self._islands.add(trial)
            if self._instructions is not None:
                self._instructions.learn(trial.candidate.key, trial.objective)

    def ask(self, n: int) -> list[Proposal]:
        """Children, island after island.

        Raises:
            BackendError, ReplayMismatch: as `Talk.ideas`.
        """
        return self._desk.ideas(n, self._think)

    def _think(self, number: int) -> Idea:
        desk = self._desk
        rng = desk.rng(number)
        island = ((desk.talk.asks - 1) * desk.batch + number) % self._count
        mother = self._islands.pick(island, rng)
        is_crossed = mother is not None and rng.random() < self._crossover
        father = self._islands.pick(island, rng, but=mother) if is_crossed else None
        added = [self._inspired([each for each in (mother, father) if each is not None])]
        if father is not None and mother is not None:
            added += yield from self._joined(number, mother, father)
        instruction = None
        if self._instructions is not None:
            yield from self._renewed(number, self._instructions)
            instruction = self._instructions.choose()
            added.append(desk.text("instruction", text=instruction.text))
        start = desk.dialect.start() if mother is None else mother.candidate
        shown = None if start is None else desk.parent(start)
        turn = Turn(desk.page(number, shown, *added), start)
        _, reply = yield from desk.insisted(turn)
        if not isinstance(reply, Draft):
            return None
        self._islands.expect(reply.candidate, island)
        if self._instructions is not None and instruction is not None:
            height = None if mother is None else mother.objective
            self._instructions.expect(reply.candidate.key, instruction, height)
        parents = () if father is None else (father.candidate.key,)
        return replace(reply, parents=(*reply.parents, *parents))

    def _inspired(self, parents: Sequence[Trial]) -> str:
        """The section of other good programs; empty if there are none."""
        found = self._islands.inspirations(self._shown, but=parents) if self._shown else []
        rows = [self._desk.parent(trial.candidate) for trial in found]
        return self._desk.text("inspirations", programs=rows) if rows else ""

    def _joined(
        self, number: int, mother: Trial, father: Trial
    ) -> Generator[Turn, Reply, list[str]]:
        """The sections of a second parent and of a plan that joins both; without the plan if none
        came.
        """
        desk = self._desk
        other = desk.text("second", parent=desk.parent(father.candidate))
        role = desk.text("joining")
        page = desk.page(number, desk.parent(mother.candidate), other, role, mark=PLAN)
        _, reply = yield from desk.insisted(Turn(page, mother.candidate, 1, PLAN))
        if not isinstance(reply, Said):
            return [other]
        return [other, desk.text("plan", plan=reply.value, move=None)]

    def _renewed(self, number: int, instructions: Instructions) -> Generator[Turn, Reply, None]:
        """From time to time, ask for an instruction that is better than the least useful one."""
        if not instructions.is_due:
            return
        desk = self._desk
        rows = sorted(instructions.population, key=lambda each: -each.mean)
        role = desk.text("instructions", rows=rows)
        best = self._best()
        page = desk.page(number, None if best is None else desk.parent(best), role, mark=PLAN)
        _, reply = yield from desk.insisted(Turn(page, best, 1, PLAN), 1)
        instructions.renew(str(reply.value) if isinstance(reply, Said) else None)

    def _best(self) -> Candidate | None:
        found = self._islands.inspirations(1, but=())
        return found[0].candidate if found else self._desk.dialect.start()
