"""The space of schedules of one procedure: traces of directives, every one of them legal.

Open: there is no list of its members. It is drawn from by decisions (``sketch``, ``draw``), moved
in by changing one of them or by single directives (``compiler.schedule.moves``).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.codegen.form import MAX_UNROLLED
from kernelwright.env.compiler.codegen.unrolled import written
from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure, Store, statements
from kernelwright.env.compiler.schedule.decision import decisions_of, without_decisions
from kernelwright.env.compiler.schedule.explain import explain
from kernelwright.env.compiler.schedule.kind import LANES
from kernelwright.env.compiler.schedule.memo import schedules_of
from kernelwright.env.compiler.schedule.moves import FACTORS, legal_moves, spell, vocabulary
from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Violation
from kernelwright.env.spaces.schedule.chance import Drawing, pick
from kernelwright.env.spaces.schedule.draw import Limits, change_plan, draw_plan, mix_plans
from kernelwright.env.spaces.schedule.features import features_of
from kernelwright.env.spaces.schedule.further import (
    CORE,
    all_further,
    draw_further,
    further_directives,
    of_statement,
    statement_steps,
)
from kernelwright.env.spaces.schedule.nest import Nest, find_nests
from kernelwright.env.spaces.schedule.sketch import Outline, Plan, Trace, directives, outline
from kernelwright.env.types import Candidate, Directive, Language

MAX_DIRECTIVES = 128
TRIES = 8
EXTENDED = 0.15  # how often a move follows a sample, and another that move
EDITED = 0.1  # how often a mutation changes a directive and no decision
# The same where there are more directives than decisions stand for, and how often a move is one.
EXTENDED_FURTHER, EDITED_FURTHER, FURTHER = 0.5, 0.4, 0.7
ON_STATEMENT = 0.5  # how often a further directive is one on the statement, where there is one
REMEMBERED = 512


class ScheduleSpace:
    """The schedules of a procedure whose loops have constant extents or not, on some threads.

    Args:
        procedure: what is scheduled.
        threads: how many threads there are; with one nothing is parallel.
        lanes: numbers of vector lanes to draw from.
        directives: which directives moves are drawn from: the ``core`` ones (split, unroll,
            vectorize, parallel, fuse, reorder), ``all``, or some by name beside the core ones.

    Raises:
        OptionError: if there is no thread, a number of lanes is none of a vector's, or a directive
            is none.
    """

    language = Language.SCHEDULE
    can_sample = True

    def __init__(
        self,
        procedure: Procedure,
        *,
        threads: int = 1,
        lanes: Sequence[int] = (4, 8, 16, 32),
        directives: str | Sequence[str] = CORE,
    ) -> None:
        if threads < 1:
            raise OptionError("threads", "at least 1", str(threads))
        if not lanes or not set(lanes) <= set(LANES):
            known = ", ".join(map(str, LANES))
            raise OptionError("lanes", f"numbers of lanes among {known}", str(list(lanes)))
        self.procedure, self.threads = procedure, threads
        self.lanes = tuple(sorted(set(lanes)))
        self._of_statement = of_statement(procedure)
        named = further_directives(directives)
        self._further = (*self._of_statement, *named)
        # What a proposer is told in full: what there is a name for in particular.
        self.named = () if isinstance(directives, str) else named
        self.default = Candidate(Language.SCHEDULE, ())
        self._limits = Limits(self.lanes, threads > 1)
        self._nests = find_nests(procedure)
        # What a nest's share of the time may be, roughly; small ones are to be moved in, too.
        self._weights = [math.sqrt(nest.iterations) for nest in self._nests]
        self._schedules = schedules_of(procedure)
        self._moves: OrderedDict[str, tuple[Directive, ...]] = OrderedDict()

    def scheduled(self, candidate: Candidate) -> Procedure:
        """The procedure after a candidate's directives, remembered by prefix.

        Raises:
            ScheduleError: at the first directive that may not be applied.
            ValueError: if it is no schedule.
        """
        return self._schedules.after(_trace(candidate))

    def check(self, candidate: Candidate) -> tuple[Violation, ...]:
        """Why a candidate is not in the space; empty if it is."""
        if candidate.language is not Language.SCHEDULE:
            reason = f"expected a schedule candidate, found {candidate.language}"
            return (Violation("language", reason),)
        try:
            decisions_of(_entries(candidate))
        except ScheduleError as error:
            return (Violation("illegal_decision", str(error)),)
        trace = _trace(candidate)
        if len(trace) > MAX_DIRECTIVES:
            reason = f"expected at most {MAX_DIRECTIVES} directives, found {len(trace)}"
            return (Violation("too_long", reason),)
        threaded = next((d for d in trace if d.op == "parallel"), None)
        if threaded is not None and self.threads == 1:
            reason = (
                f"parallel: expected a target of several threads for {threaded.target}, found 1"
            )
            return (Violation("threads", reason),)
        try:
            count = written(self._schedules.after(trace).body)
        except CompilerError as error:
            return (Violation("illegal_directive", str(error)),)
        if count > MAX_UNROLLED:
            reason = f"expected at most {MAX_UNROLLED} statements after unrolling, found {count}"
            return (Violation("too_many_statements", reason),)
        return ()

    def explain(self, candidate: Candidate) -> tuple[Violation, ...]:
        """`check`, where a directive is refused with its line, and with the nearest directive that
        would be accepted there (`compiler.schedule.explain`).
        """
        violations = self.check(candidate)
        if [v.code for v in violations] not in (["illegal_directive"], ["illegal_decision"]):
            return violations
        refusal = explain(self._schedules, _entries(candidate))
        return violations if refusal is None else (Violation(violations[0].code, str(refusal)),)

    def canonical(self, candidate: Candidate) -> Candidate:
        """The candidate without arguments that repeat their defaults, tiles written out, and no
        record of decisions.
        """
        spelled = tuple(each for d in _trace(candidate) for each in spell(d))
        return Candidate(Language.SCHEDULE, spelled)

    def legal_moves(self, candidate: Candidate) -> tuple[Directive, ...]:
        """Every single directive of the vocabulary that may be appended, in a fixed order; then
        those of the further directives that the space draws from, of each a few.
        """
        found = self._moves.get(candidate.key)
        if found is None:
            found = self._find_moves(_trace(candidate))
            self._moves[candidate.key] = found
            if len(self._moves) > REMEMBERED:
                self._moves.popitem(last=False)
        return found

    def _find_moves(self, trace: Trace) -> tuple[Directive, ...]:
        if len(trace) >= MAX_DIRECTIVES:
            return ()
        procedure = self._schedules.after(trace)
        found = legal_moves(
            procedure,
            lambda move: self._append(trace, move),
            lanes=self.lanes,
            threaded=self._limits.threaded,
        )
        further = all_further(procedure, self._further)
        return (*found, *(m for m in further if m not in found and self._is_legal(trace, m)))

    def _is_legal(self, trace: Trace, move: Directive) -> bool:
        if move.op == "parallel" and not self._limits.threaded:
            return False
        try:
            self._append(trace, move)
        except CompilerError:
            return False
        return True

    def _append(self, trace: Trace, move: Directive) -> Trace:
        """A trace and one more directive.

        Raises:
            ScheduleError: if it is refused, or would write out too much.
        """
        if written(self._schedules.after((*trace, move)).body) > MAX_UNROLLED:
            raise ScheduleError(move.op, f"expected at most {MAX_UNROLLED} statements")
        return (*trace, move)

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """One directive more, one less, or one factor a step away."""
        trace = _trace(candidate)
        near = [(*trace, move) for move in self.legal_moves(candidate)]
        near += [trace[:-1]] if trace else []
        for place, directive in enumerate(trace):
            near += [
                (*trace[:place], other, *trace[place + 1 :]) for other in _other_factors(directive)
            ]
        unique = dict.fromkeys(Candidate(Language.SCHEDULE, each) for each in near)
        return tuple(each for each in unique if not self.check(each))

    def sample(self, rng: np.random.Generator) -> Candidate:
        """Random decisions for every nest, at times followed by a random move or more; what is
        refused of them is left out.
        """
        for _ in range(TRIES):
            plans = tuple(draw_plan(nest, Drawing(rng), self._limits) for nest in self._nests)
            drawn = self._legal(Outline(plans, ((),) * len(plans), ()).trace(self._nests))
            if drawn is not None:
                return self._extended(drawn, rng)
        return self.default

    def _extended(self, drawn: Candidate, rng: np.random.Generator) -> Candidate:
        """Moves reach what no decision stands for; where decisions are few, that is most."""
        while rng.random() < (EXTENDED_FURTHER if self._further else EXTENDED):
            longer = self._append_any(_trace(drawn), rng)
            found = None if longer is None else self._legal(longer)
            drawn = drawn if found is None else found
        return drawn

    def mutate(
        self, candidate: Candidate, rng: np.random.Generator, steps: int = 1
    ) -> Candidate | None:
        """Some decisions or directives changed, the rest kept as far as it stays legal; None if
        this draw gave nothing else.
        """
        found: Candidate | None = candidate
        for _ in range(steps):
            changed = None if found is None else self._change(_trace(found), rng)
            found = None if changed is None else self._legal(changed)
        return None if found == candidate else found

    def _change(self, trace: Trace, rng: np.random.Generator) -> Trace | None:
        if not self._nests or rng.random() < (EDITED_FURTHER if self._further else EDITED):
            return self._edit(trace, rng)
        parts = outline(self._nests, trace)
        place = pick(rng, range(len(self._nests)), self._weights)
        nest, plan = self._nests[place], parts.plans[place]
        if plan is None or rng.random() < 0.05:
            if rng.random() < 0.5:
                return self._edit(trace, rng)
            new: Plan | None = draw_plan(nest, Drawing(rng), self._limits)
        else:
            new = self._changed(nest, plan, rng)
        if new is None:
            return None
        plans = [*parts.plans]
        foreign = [*parts.foreign]
        plans[place], foreign[place] = new, ()
        return Outline(tuple(plans), tuple(foreign), parts.homeless).trace(self._nests)

    def _changed(self, nest: Nest, plan: Plan, rng: np.random.Generator) -> Plan | None:
        """A decision changed that shows in the directives; a block of a loop of two does not."""
        shown = directives(nest, plan).trace()
        for _ in range(TRIES):
            new = change_plan(nest, plan, rng, self._limits)
            if new is not None and directives(nest, new).trace() != shown:
                return new
        return None

    def _edit(self, trace: Trace, rng: np.random.Generator) -> Trace | None:
        """A directive more, one less, or another factor."""
        choice = int(rng.integers(3)) if trace else 0
        if choice == 0:
            return self._append_any(trace, rng)
        place = int(rng.integers(len(trace)))
        if choice == 1:
            return (*trace[:place], *trace[place + 1 :])
        others = _other_factors(trace[place])
        return (*trace[:place], pick(rng, others), *trace[place + 1 :]) if others else None

    def _append_any(self, trace: Trace, rng: np.random.Generator) -> Trace | None:
        """A trace and a move that may be legal, None if there is none."""
        if self._further and rng.random() < FURTHER:
            return self._insert_further(trace, rng)
        moves = vocabulary(
            self._schedules.after(trace), lanes=self.lanes, threaded=self._limits.threaded
        )
        return (*trace, pick(rng, moves)) if moves else None

    def _insert_further(self, trace: Trace, rng: np.random.Generator) -> Trace | None:
        """A trace with a further directive that is legal at its place, None if some draws gave
        none. Anywhere: a stage is put into loops before they are vectorized, not after.
        """
        first = len(self._of_statement)
        ops = self._further[first:]
        if first and (not ops or rng.random() < ON_STATEMENT):
            ops, place = self._of_statement, statement_steps(trace)
        else:
            place = int(rng.integers(len(trace) + 1))
        before = trace[:place]
        procedure = self._schedules.after(before)
        for _ in range(TRIES):
            move = draw_further(procedure, ops, rng)
            if move is not None and self._is_legal(before, move):
                return (*before, move, *trace[place:])
        return None

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """Every nest from either parent, and where they differ in one only, its decisions from
        either; None if nothing new comes of it.
        """
        a, b = (outline(self._nests, _trace(each)) for each in (left, right))
        different = [
            place
            for place in range(len(self._nests))
            if (a.plans[place], a.foreign[place]) != (b.plans[place], b.foreign[place])
        ]
        plans, foreign = [*a.plans], [*a.foreign]
        for place in different:
            mine, other = a.plans[place], b.plans[place]
            mixed = rng.random() < (1.0 if len(different) == 1 else 0.5)
            if mixed and mine is not None and other is not None:
                plans[place] = mix_plans(self._nests[place], mine, other, rng)
            elif rng.random() < 0.5:
                plans[place], foreign[place] = other, b.foreign[place]
        found = self._legal(Outline(tuple(plans), tuple(foreign), a.homeless).trace(self._nests))
        return None if found is None or found in (left, right) else found

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """Numbers for a model to learn from, as many for every schedule; here `loop_features`."""
        return self.loop_features(candidate)

    def loop_features(self, candidate: Candidate) -> NDArray[np.float64]:
        """Numbers about the scheduled loops around every store, as many for every schedule."""
        return features_of(self.scheduled(candidate), self._stores)

    @property
    def _stores(self) -> int:
        return sum(isinstance(s, Store) for s in statements(self.procedure.body))

    def _legal(self, trace: Trace) -> Candidate | None:
        """The trace without the directives that are refused, None if what is left is not in the
        space.
        """
        kept: Trace = ()
        for directive in trace:
            try:
                self._schedules.after((*kept, directive))
            except CompilerError:
                continue
            kept = (*kept, directive)
        candidate = Candidate(Language.SCHEDULE, kept)
        return None if self.check(candidate) else candidate


def _trace(candidate: Candidate) -> Trace:
    """The directives of a candidate without the decisions that it records."""
    if candidate.language is not Language.SCHEDULE:
        raise ValueError(f"expected a schedule candidate, found {candidate.language}")
    return without_decisions(_entries(candidate))


def _entries(candidate: Candidate) -> Trace:
    return tuple(d for d in candidate.payload if isinstance(d, Directive))


def _other_factors(directive: Directive) -> list[Directive]:
    """The directive with its factor one step down or up."""
    match directive:
        case Directive("split", loop, (int(factor), *names)):
            below = [f for f in FACTORS if f < factor][-1:]
            above = [f for f in FACTORS if f > factor][:1]
            return [Directive("split", loop, (f, *names)) for f in (*below, *above)]
    return []
