"""What traces lead to, remembered: a search asks for the same prefixes again and again, and proving
a directive legal costs milliseconds.

Keys are texts, because equal values may be different programs (8 and 8.0, 0.0 and -0.0).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import TypeAlias

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule.decision import decisions_of, without_decisions
from kernelwright.env.compiler.schedule.trace import apply, print_trace
from kernelwright.env.types import Directive

MAX_PROCEDURES = 16
MAX_TRACES = 2048
_Refusal: TypeAlias = tuple[str, str, str | None]


class Schedules:
    """The procedures that traces over one procedure lead to; the `MAX_TRACES` asked for last are
    kept, refusals too.
    """

    def __init__(self, procedure: Procedure) -> None:
        self.procedure = procedure
        self._known: OrderedDict[str, Procedure | _Refusal] = OrderedDict()
        self._lock = Lock()

    def after(self, trace: Sequence[Directive]) -> Procedure:
        """The procedure after a trace; only what no earlier trace began with is applied.

        Raises:
            ScheduleError: at the first directive that may not be applied, or decision that is not
                in its domain.
        """
        if any(step.is_decision for step in trace):
            decisions_of(trace)
            trace = without_decisions(trace)
        keys = list(accumulate(print_trace((directive,)) for directive in trace))
        done, current = self._longest(keys)
        for directive, key in zip(trace[done:], keys[done:], strict=True):
            try:
                current = apply(current, directive)
            except ScheduleError as error:
                self._keep(key, (error.op, error.reason, error.conflict))
                raise
            self._keep(key, current)
        return current

    def _longest(self, keys: Sequence[str]) -> tuple[int, Procedure]:
        """How many directives of a trace are known, and what they lead to."""
        with self._lock:
            for count in range(len(keys), 0, -1):
                found = self._known.get(keys[count - 1])
                if found is None:
                    continue
                self._known.move_to_end(keys[count - 1])
                if isinstance(found, tuple):
                    raise ScheduleError(*found)
                return count, found
        return 0, self.procedure

    def _keep(self, key: str, result: Procedure | _Refusal) -> None:
        with self._lock:
            self._known[key] = result
            if len(self._known) > MAX_TRACES:
                self._known.popitem(last=False)


_BY_TEXT: OrderedDict[str, Schedules] = OrderedDict()
_LOCK = Lock()


def schedules_of(procedure: Procedure) -> Schedules:
    """The one memory of all procedures that are written alike and come from one origin."""
    origin = procedure.origin
    key = repr((procedure, None if origin is None else origin.key))
    with _LOCK:
        found = _BY_TEXT.setdefault(key, Schedules(procedure))
        _BY_TEXT.move_to_end(key)
        if len(_BY_TEXT) > MAX_PROCEDURES:
            _BY_TEXT.popitem(last=False)
    return found


def cached_apply(procedure: Procedure, trace: Sequence[Directive]) -> Procedure:
    """`apply_trace`, remembering what it did.

    Raises:
        ScheduleError: at the first directive that may not be applied.
    """
    return schedules_of(procedure).after(trace)
