"""A schedule being written by a program: what ``s`` is in ``def space(s): ...``.

Sampling methods return plain-looking numbers and words that remember which decision they came from
through arithmetic, so that the run can tell which directives a decision went into.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure, loops
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.compiler.schedule.decision import Decision
from kernelwright.env.compiler.schedule.domain import Choice, Domain, Tile, Value
from kernelwright.env.compiler.schedule.edit import constant_extent, find_loop
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.moves import spell
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.spaces.schedule.drawn import drawn, names_in, plain
from kernelwright.env.spaces.schedule.structure import readers_loops
from kernelwright.env.types import Directive, Scalar

ROOT, INLINE = "root", "inline"
MAX_ENTRIES = 512  # directives and decisions that one run may write


class InfeasibleError(CompilerError):
    """A run that ended in a directive that is refused, or in a rule that is broken; ``decisions``
    are the names of those that went into it.
    """

    def __init__(self, reason: str, decisions: Sequence[str] = ()) -> None:
        came = f" (from {', '.join(decisions)})" if decisions else ""
        super().__init__(f"{reason}{came}")
        self.decisions = tuple(decisions)


class TraceBuilder:
    """Writes a trace over a procedure.

    Every directive is a method that takes what the directive takes and returns the names of the
    loops that it made, outermost first: ``io, ii = s.split("i", 8)``. One that is refused ends the
    run; `legal` asks before.

    Args:
        schedules: the procedure, and what is known of traces over it.
        kept: values by decision; one that the program asks for with another domain is drawn anew.
        seed: of what is drawn; each decision has a generator of its own, so that none depends on
            how many were drawn before it. None refuses to draw.
        threads: how many threads the target has.
        lanes: the numbers of vector lanes that the target has.
    """

    def __init__(
        self,
        schedules: Schedules,
        *,
        kept: Mapping[str, Value],
        seed: int | None,
        threads: int = 1,
        lanes: Sequence[int] = (),
    ) -> None:
        self.threads, self.lanes = threads, tuple(lanes)
        self._schedules, self._kept, self._seed = schedules, dict(kept), seed
        self.trace: tuple[Directive, ...] = ()
        self.uses: list[tuple[str, ...]] = []
        self.decisions: dict[str, Decision] = {}
        self._directives: tuple[Directive, ...] = ()
        self._counts: Counter[str] = Counter()

    # What is there

    @property
    def procedure(self) -> Procedure:
        """The procedure as scheduled so far."""
        return self._schedules.after(self._directives)

    @property
    def loops(self) -> tuple[str, ...]:
        """The names of all loops, in program order."""
        return tuple(loop.var for loop in loops(self.procedure))

    def extent(self, loop: str) -> int | None:
        """The extent of a loop where it is a number.

        Raises:
            InfeasibleError: if there is no such loop.
        """
        try:
            return constant_extent(find_loop("extent", self.procedure, plain_text(loop)))
        except ScheduleError as error:
            raise InfeasibleError(str(error), names_in((loop,))) from None

    def legal(self, op: str, target: str, *args: Scalar) -> bool:
        """Whether there is such a directive and it would be accepted now."""
        try:
            return self.follows(_directive(op, target, args))
        except ValueError:
            return False

    def follows(self, *directives: Directive) -> bool:
        """Whether all of some directives exist and would be accepted now, one after another."""
        if any(directive.op not in known_directives() for directive in directives):
            return False
        try:
            self._schedules.after((*self._directives, *directives))
        except CompilerError:
            return False
        return True

    # Decisions

    def sample_perfect_tile(
        self, loop: str, n: int, max_inner: int = 64, *, name: str | None = None
    ) -> tuple[int, ...]:
        """Factors of a loop's extent, outermost first, uniformly among all of which the last is at
        most ``max_inner`` (MetaSchedule's primitive of that name).
        """
        extent = self._extent_to_cut(loop)
        domain = self._domain(lambda: Tile(extent, n, max_inner=max_inner))
        value = self.decide(name or self._usual(f"{loop}_tile"), domain)
        return tuple(int_of(factor) for factor in value)

    def sample_partitioned_tile(
        self,
        loop: str,
        n: int,
        position: int = 0,
        inner_factor: int = 1,
        *,
        name: str | None = None,
    ) -> tuple[int, ...]:
        """Factors of a loop's extent, outermost first, uniformly among all of which those from
        ``position`` on have a product that ``inner_factor`` divides.
        """
        extent = self._extent_to_cut(loop)
        domain = self._domain(lambda: Tile(extent, n, position=position, inner_factor=inner_factor))
        value = self.decide(name or self._usual(f"{loop}_tile"), domain)
        return tuple(int_of(factor) for factor in value)

    def sample_categorical(
        self,
        options: Sequence[Scalar],
        probabilities: Sequence[float] | None = None,
        *,
        name: str | None = None,
    ) -> Any:
        """One of some options, equally likely or by their probabilities."""
        given, weights = tuple(map(plain, options)), tuple(probabilities or ())
        domain = self._domain(lambda: Choice(given, weights))
        return self.decide(name or self._usual("choice"), domain)[0]

    def sample_compute_location(self, tensor: str, *, name: str | None = None) -> str:
        """Where a temporary is computed: ``root``, where it is; ``inline``, at every use; or one of
        the loops around its readers. Only what is legal now is drawn from; without another place
        it is where it is, and nothing is decided. `place` puts it there.
        """
        options: list[Scalar] = [ROOT]
        if self.legal("compute_inline", tensor):
            options.append(INLINE)
        options += [
            loop
            for loop in readers_loops(self.procedure, tensor)
            if self.legal("compute_at", tensor, loop)
        ]
        if len(options) == 1:
            return ROOT
        domain = self._domain(lambda: Choice(tuple(options), op="sample_compute_location"))
        return str_of(self.decide(name or self._usual(f"{tensor}_at"), domain)[0])

    def decide(self, name: str, domain: Domain) -> Value:
        """The value of a decision: the kept one where it fits, else a new one.

        Raises:
            InfeasibleError: if the program decides one thing twice, or nothing may be drawn.
        """
        if name in self.decisions:
            raise InfeasibleError(f"expected one decision {name}, found two")
        value = self._kept.get(name)
        if value is None or domain.fault(value) is not None:
            if self._seed is None:
                raise InfeasibleError(f"expected a value for the decision {name}, found {value}")
            value = domain.draw(_generator(self._seed, name))
        self.decisions[name] = Decision(name, domain, value)
        self._write(self.decisions[name].entry, ())
        return tuple(drawn(part, name) for part in value)

    def _domain(self, make: Callable[[], Domain]) -> Domain:
        try:
            return make()
        except ValueError as error:
            raise InfeasibleError(str(error)) from None

    def _extent_to_cut(self, loop: str) -> int:
        extent = self.extent(loop)
        if extent is None or extent < 1:
            raise InfeasibleError(f"expected an extent that is a number in {loop}, found none")
        return extent

    def _usual(self, wanted: str) -> str:
        """A name for a decision that was given none: counted where there is one like it."""
        while True:
            self._counts[wanted] += 1
            count = self._counts[wanted]
            name = wanted if count == 1 else f"{wanted}_{count}"
            if name not in self.decisions:
                return name

    # Directives

    def apply(self, directive: Directive) -> tuple[str, ...]:
        """Write a directive, in its one spelling; the names of the loops that it made.

        Raises:
            InfeasibleError: if it is refused.
        """
        decisions = names_in((directive.target, *directive.args))
        before = set(self.loops)
        for each in spell(_directive(directive.op, directive.target, directive.args)):
            try:
                self._schedules.after((*self._directives, each))
            except CompilerError as error:
                text = print_trace((each,)).strip()
                line = len(self.trace) + 1
                raise InfeasibleError(f"line {line}, {text}: {error}", decisions) from error
            self._write(each, decisions)
        return tuple(name for name in self.loops if name not in before)

    def try_apply(self, directive: Directive) -> bool:
        """Write a directive if it is accepted; whether it was."""
        if not self.legal(directive.op, directive.target, *directive.args):
            return False
        self.apply(directive)
        return True

    def place(self, tensor: str, location: str) -> None:
        """Compute a temporary where `sample_compute_location` said.

        Raises:
            InfeasibleError: if the directive is refused.
        """
        if location == INLINE:
            self.apply(Directive("compute_inline", tensor))
        elif location != ROOT:
            self.apply(Directive("compute_at", tensor, (location,)))

    def cut(self, loop: str, factors: Sequence[int]) -> tuple[str, ...]:
        """Split a loop into as many as there are factors, outermost first; the first factor is what
        is left of the extent.
        """
        parts: list[str] = []
        outer = loop
        for factor in reversed(factors[1:]):
            outer, inner = self.split(outer, factor)
            parts.append(inner)
        return (outer, *reversed(parts))

    def require(self, holds: bool, reason: str, *values: Any) -> None:
        """End the run if a condition does not hold; ``values`` are what it is about.

        Raises:
            InfeasibleError: with the reason.
        """
        if not holds:
            raise InfeasibleError(reason, names_in(values))

    def __getattr__(self, op: str) -> Any:
        if op not in known_directives():
            raise AttributeError(f"expected a directive or method of a schedule, found {op!r}")

        def method(target: str, *args: Scalar) -> tuple[str, ...]:
            try:
                directive = Directive(op, target, args)
            except ValueError as error:
                raise InfeasibleError(str(error), names_in((target, *args))) from None
            return self.apply(directive)

        return method

    def _write(self, step: Directive, decisions: Sequence[str]) -> None:
        if len(self.trace) >= MAX_ENTRIES:
            raise InfeasibleError(f"expected at most {MAX_ENTRIES} directives and decisions")
        self.trace = (*self.trace, step)
        self.uses.append(tuple(decisions))
        if not step.is_decision:
            self._directives = (*self._directives, step)


def _directive(op: str, target: str, args: Sequence[Scalar]) -> Directive:
    return Directive(op, plain_text(target), tuple(plain(a) for a in args))


def plain_text(value: str) -> str:
    """A word without what it remembers."""
    return str.__str__(value)


def int_of(value: Scalar) -> int:
    """A value of a tile, which is a whole number."""
    assert isinstance(value, int)
    return value


def str_of(value: Scalar) -> str:
    """A value of a location, which is a word."""
    assert isinstance(value, str)
    return value


def _generator(seed: int, name: str) -> np.random.Generator:
    """A generator that depends on the seed and the decision's name alone."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
