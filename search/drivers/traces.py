"""Walking schedules directive by directive: what beam and tree search share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelwright.env.compiler.schedule.moves import vocabulary
from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Language
from kernelwright.search.drivers.pool import OpenPool

# Directives tried before a trace counts as one that cannot be extended.
TRIES = 12


def schedules(space: Space) -> ScheduleSpace:
    """A space whose candidates are traces of directives.

    Raises:
        OptionError: if it is another.
    """
    if not isinstance(space, ScheduleSpace):
        found = f"{type(space).__name__}, whose candidates are no traces of directives"
        raise OptionError("name", "a space of kind schedule", found)
    return space


class Traces:
    """Traces by handle, extended by legal directives at random.

    The kind of the directive is drawn first, since most of those that may follow are splits by one
    factor or another.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator) -> None:
        self._space = space
        self.pool = OpenPool(space, rng)
        self.root = self.pool.handle(space.default)

    def trace(self, handle: int) -> tuple[Directive, ...]:
        """The directives of a handle."""
        payload = self.pool.candidate(handle).payload
        return tuple(
            step for step in payload if isinstance(step, Directive) and not step.is_decision
        )

    def prefix(self, handle: int, length: int) -> int:
        """The handle of the first directives of a trace, which are legal where all are."""
        return self.pool.handle(Candidate(Language.SCHEDULE, self.trace(handle)[:length]))

    def extend(self, handle: int) -> int | None:
        """A trace with one more directive, visited or not; None if no draw was legal."""
        trace, draw = self.trace(handle), self.pool.uniform
        procedure = self._space.scheduled(self.pool.candidate(handle))
        moves = vocabulary(procedure, lanes=self._space.lanes, threaded=self._space.threads > 1)
        kinds: dict[str, list[Directive]] = {}
        for move in moves:
            kinds.setdefault(move.op, []).append(move)
        for _ in range(TRIES):
            if not kinds:
                return None
            op = list(kinds)[int(draw() * len(kinds))]
            move = kinds[op].pop(int(draw() * len(kinds[op])))
            if not kinds[op]:
                del kinds[op]
            longer = self._append(trace, move)
            if longer is not None:
                return longer
        return None

    def follow(self, handle: int, moves: Sequence[Directive]) -> int:
        """A trace with those of some directives that are legal after it, in their order."""
        for move in moves:
            longer = self._append(self.trace(handle), move)
            handle = handle if longer is None else longer
        return handle

    def _append(self, trace: Sequence[Directive], move: Directive) -> int | None:
        longer = Candidate(Language.SCHEDULE, (*trace, move))
        return None if self._space.check(longer) else self.pool.handle(longer)
