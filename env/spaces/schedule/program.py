"""Probabilistic programs: a function writes a schedule and draws its decisions on the way (Shao et
al., Tensor Program Optimization with Probabilistic Programs, NeurIPS 2022).

For example::

    def space(s):
        rows, inner = s.sample_perfect_tile("i", 2, max_inner=16)
        io, ii = s.split("i", inner)
        lanes = s.sample_categorical((8, 16), (0.3, 0.7), name="lanes")
        jo, ji = s.split("j", lanes)
        s.vectorize(ji)

A run is a function of its decisions, so a trace that records them can be run again: exactly, with
one decision changed (mutation), or with each from either of two traces (crossover). Decisions keep
their values by name where the program still asks for them and they are in the domain that it asks
with; others are drawn anew, each from a generator of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import numpy as np

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule.decision import Decision, decisions_of, without_decisions
from kernelwright.env.compiler.schedule.domain import Value
from kernelwright.env.compiler.schedule.memo import schedules_of
from kernelwright.env.compiler.schedule.trace import Trace, print_trace
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.schedule.builder import InfeasibleError, TraceBuilder
from kernelwright.env.spaces.schedule.chance import pick
from kernelwright.env.types import Directive

SpaceFunction: TypeAlias = Callable[[TraceBuilder], object]
TRIES = 32
FRESH = 0.2  # how often a changed decision is drawn anew and not moved a step
REMEMBERED = 512


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a program wrote: the trace with its decisions, the decisions by name, and for
    each entry of the trace the decisions that its arguments came from.
    """

    trace: Trace
    decisions: Mapping[str, Decision]
    uses: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> dict[str, Value]:
        """The values of the decisions."""
        return {name: decision.value for name, decision in self.decisions.items()}

    @property
    def directives(self) -> Trace:
        """The trace without its decisions."""
        return without_decisions(self.trace)

    def users(self, decision: str) -> tuple[Directive, ...]:
        """The directives that a decision went into."""
        return tuple(
            step for step, names in zip(self.trace, self.uses, strict=True) if decision in names
        )


class Program:
    """A function that writes schedules of one procedure.

    Args:
        function: takes a `TraceBuilder` and writes a schedule with it. It is a function of what the
            builder answers: randomness of its own would make its traces ones that cannot be run
            again.
        procedure: what is scheduled.
        threads: how many threads there are.
        lanes: the numbers of vector lanes to draw from.

    Raises:
        OptionError: if the function fails or writes something else when it is run again.
    """

    def __init__(
        self,
        function: SpaceFunction,
        procedure: Procedure,
        *,
        threads: int = 1,
        lanes: Sequence[int] = (),
    ) -> None:
        self._function, self._threads, self._lanes = function, threads, tuple(lanes)
        self._schedules = schedules_of(procedure)
        self._known: OrderedDict[str, Run | None] = OrderedDict()
        self._lock = Lock()
        self.first = self._try_out()

    def _try_out(self) -> Run:
        """The first feasible run by seeds counted from 0."""
        reasons = []
        for seed in range(TRIES):
            try:
                first = self.run({}, seed)
            except InfeasibleError as error:
                reasons.append(str(error))
                continue
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
                raise OptionError("program", "a function that writes schedules", found) from error
            try:
                again: Run | None = self.run(first.values, None)
            except InfeasibleError:
                again = None
            if again != first:
                found = "another schedule from the same decisions"
                raise OptionError("program", "a function of its decisions alone", found)
            return first
        raise OptionError("program", "a schedule that may be applied", reasons[0])

    def run(self, kept: Mapping[str, Value], seed: int | None) -> Run:
        """Run the program with some values given; what else it decides is drawn by the seed.

        Raises:
            InfeasibleError: if a directive is refused, or without a seed something is to be drawn.
        """
        builder = TraceBuilder(
            self._schedules, kept=kept, seed=seed, threads=self._threads, lanes=self._lanes
        )
        self._function(builder)
        return Run(builder.trace, builder.decisions, tuple(builder.uses))

    def draw(self, rng: np.random.Generator) -> Run | None:
        """A run with all decisions drawn; None if none of a few was feasible."""
        for _ in range(TRIES):
            found = self._attempt({}, rng)
            if found is not None:
                return found
        return None

    def replay(self, trace: Trace) -> Run | None:
        """The run that wrote a trace, by the decisions that the trace records; None if there is no
        such run: the trace was edited, or written by somebody else.
        """
        key = print_trace(trace)
        with self._lock:
            if key in self._known:
                return self._known[key]
        found = self._replayed(trace)
        with self._lock:
            self._known[key] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _replayed(self, trace: Trace) -> Run | None:
        try:
            kept = {name: each.value for name, each in decisions_of(trace).items()}
            found = self.run(kept, None)
        except (ScheduleError, InfeasibleError):
            return None
        # As text, in which 8 and 8.0 differ.
        return found if print_trace(found.trace) == print_trace(trace) else None

    def near(self, run: Run) -> tuple[Run, ...]:
        """The feasible runs with one decision a step away, in a fixed order. What they decide
        beyond that is drawn by the decision's place.
        """
        found: dict[str, Run] = {}
        for place, (name, decision) in enumerate(run.decisions.items()):
            for value in decision.domain.near(decision.value):
                try:
                    other = self.run({**run.values, name: value}, place)
                except InfeasibleError:
                    continue
                found.setdefault(print_trace(other.trace), other)
        return tuple(found.values())

    def mutate(self, run: Run, rng: np.random.Generator) -> Run | None:
        """A run with one decision changed so that other directives come of it; None if none of a
        few was feasible.
        """
        free = [d for d in run.decisions.values() if d.domain.near(d.value)]
        for _ in range(TRIES if free else 0):
            decision = pick(rng, free)
            value = pick(rng, decision.domain.near(decision.value))
            if rng.random() < FRESH:
                value = decision.domain.draw(rng)
            if value == decision.value:
                continue
            found = self._attempt({**run.values, decision.name: value}, rng)
            # A decision whose change does not show in the directives changes nothing.
            if found is not None and found.directives != run.directives:
                return found
        return None

    def crossover(self, left: Run, right: Run, rng: np.random.Generator) -> Run | None:
        """A run with every decision from either of two; None if none of a few was feasible."""
        names = tuple(dict.fromkeys((*left.decisions, *right.decisions)))
        for _ in range(TRIES):
            first = (rng.random(len(names)) < 0.5).tolist()
            kept = {}
            for name, bit in zip(names, first, strict=True):
                order = (left, right) if bit else (right, left)
                kept[name] = next(r.decisions[name].value for r in order if name in r.decisions)
            found = self._attempt(kept, rng)
            if found is not None:
                return found
        return None

    def _attempt(self, kept: Mapping[str, Value], rng: np.random.Generator) -> Run | None:
        try:
            return self.run(kept, int(rng.integers(2**63)))
        except InfeasibleError:
            return None
