"""The space of what a probabilistic program writes: a `ScheduleSpace` whose candidates record their
decisions and are moved in by them.

A candidate that the program did not write (somebody edited its directives, or it was found another
way) is free-form: it records no decisions, and is moved in by its directives as any schedule.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule.decision import decisions_of
from kernelwright.env.compiler.schedule.trace import Trace
from kernelwright.env.spaces.schedule.builder import InfeasibleError
from kernelwright.env.spaces.schedule.program import Program, Run, SpaceFunction
from kernelwright.env.spaces.schedule.space import TRIES, ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Language

DECISION_FEATURES = 16


class ProgramSpace(ScheduleSpace):
    """The schedules that a program writes, and whatever is legal beside them.

    Args:
        procedure: what is scheduled.
        function: the program; see `program`.
        threads: how many threads there are; with one nothing is parallel.
        lanes: numbers of vector lanes to draw from.

    Raises:
        OptionError: if the program fails, or does not depend on its decisions alone.
    """

    def __init__(
        self,
        procedure: Procedure,
        function: SpaceFunction,
        *,
        threads: int = 1,
        lanes: Sequence[int] = (4, 8, 16, 32),
    ) -> None:
        super().__init__(procedure, threads=threads, lanes=lanes)
        self.program = Program(function, procedure, threads=threads, lanes=self.lanes)

    @property
    def start(self) -> Candidate:
        """A schedule of the program to begin an edit from, always the same one."""
        return self._found(self.program.first) or self.default

    def run_of(self, candidate: Candidate) -> Run | None:
        """The run that wrote a candidate, None if it is free-form."""
        trace = _entries(candidate)
        if not any(step.is_decision for step in trace):
            return None
        return self.program.replay(trace)

    def canonical(self, candidate: Candidate) -> Candidate:
        """The candidate in its one spelling; decisions that do not lead to its directives are left
        out.
        """
        if self.run_of(candidate) is not None:
            return candidate
        return super().canonical(candidate)

    def revised(self, candidate: Candidate, parent: Candidate) -> Candidate:
        """What the program writes by the decisions that a candidate records, whatever its
        directives are: an edit of a parent's decisions, carried out. Decisions that it leaves out
        are the parent's; those that are newly asked for, or do not fit any more, are drawn by a
        seed that is always the same.

        Raises:
            ScheduleError: if a decision is not in its domain.
            InfeasibleError: if a changed decision is none of the program's, or may not be so there;
                or a directive is refused.
        """
        wanted = decisions_of(_entries(candidate))
        before = self.run_of(parent)
        old = {} if before is None else before.values
        run = self.program.run({**old, **{name: d.value for name, d in wanted.items()}}, 0)
        for name, decision in wanted.items():
            if old.get(name) == decision.value:
                continue
            if name not in run.decisions:
                known = ", ".join(run.decisions)
                raise InfeasibleError(f"expected one of the decisions {known}, found {name}")
            fault = run.decisions[name].domain.fault(decision.value)
            if fault is not None:
                raise InfeasibleError(f"{name}: {fault}")
        return Candidate(Language.SCHEDULE, run.trace)

    def sample(self, rng: np.random.Generator) -> Candidate:
        """A run of the program."""
        for _ in range(TRIES):
            found = self._found(self.program.draw(rng))
            if found is not None:
                return found
        return self.default

    def mutate(
        self, candidate: Candidate, rng: np.random.Generator, steps: int = 1
    ) -> Candidate | None:
        """Some decisions changed and the program run again; of a free-form candidate some
        directives.
        """
        run = self.run_of(candidate)
        if run is None:
            return super().mutate(candidate, rng, steps)
        for _ in range(steps):
            run = None if run is None else self.program.mutate(run, rng)
        found = self._found(run)
        return None if found == candidate else found

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """Every decision from either parent; of free-form ones what `ScheduleSpace` mixes."""
        a, b = self.run_of(left), self.run_of(right)
        if a is None or b is None:
            return super().crossover(left, right, rng)
        found = self._found(self.program.crossover(a, b, rng))
        return None if found in (left, right) else found

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """One decision a step away; of a free-form candidate one directive or factor."""
        run = self.run_of(candidate)
        if run is None:
            return super().neighbours(candidate)
        near = [self._found(other) for other in self.program.near(run)]
        return tuple(dict.fromkeys(c for c in near if c is not None and c != candidate))

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """Numbers about the loops, then about the decisions; those of a free-form candidate are 0.

        There may be any number of decisions, so they are hashed into `DECISION_FEATURES` sums with
        signs (Weinberger et al., Feature hashing for large scale multitask learning, ICML 2009).
        """
        run = self.run_of(candidate)
        hashed = np.zeros(DECISION_FEATURES)
        for name, decision in {} if run is None else run.decisions.items():
            digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
            sign = 1.0 if digest[-1] % 2 else -1.0
            slot = int.from_bytes(digest[:4], "little") % DECISION_FEATURES
            hashed[slot] += sign * (1.0 + decision.domain.place(decision.value))
        return np.concatenate([self.loop_features(candidate), hashed])

    def _found(self, run: Run | None) -> Candidate | None:
        """The candidate of a run, None if it is not in the space."""
        if run is None:
            return None
        candidate = Candidate(Language.SCHEDULE, run.trace)
        return None if self.check(candidate) else candidate

    def comments(self, candidate: Candidate) -> tuple[str, ...]:
        """For each entry of a candidate's trace the decisions that it came from, as text."""
        run = self.run_of(candidate)
        if run is None:
            return ("",) * len(_entries(candidate))
        return tuple(f"from {', '.join(names)}" if names else "" for names in run.uses)


def _entries(candidate: Candidate) -> Trace:
    return tuple(step for step in candidate.payload if isinstance(step, Directive))
