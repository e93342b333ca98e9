"""What a candidate means, as text: equal forms are the same program, however it is spelled.

A candidate's key names its payload, byte for byte. Its form leaves out what no compiler sees: a
schedule is the loop nest that it leads to, knob values with a sketch are that schedule, macros are
the template with what differs from its own fallbacks, C is its tokens with numbers for the names of
locals. In doubt two candidates have two forms; keys and what is stored are left as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule.memo import Schedules, schedules_of
from kernelwright.env.compiler.schedule.trace import Trace, print_trace
from kernelwright.env.spaces.clocals import without_names
from kernelwright.env.spaces.ctokens import UnsureError, tokens
from kernelwright.env.spaces.loopform import loop_text
from kernelwright.env.types import Candidate, Directive, Knob, Language, Problem, Scalar

REMEMBERED = 4096
_FALLBACK = re.compile(
    r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\n[ \t]*#[ \t]*define[ \t]+\1[ \t]+(.*?)[ \t]*$",
    re.MULTILINE,
)


class Forms:
    """The forms of the candidates of a space, the last `REMEMBERED` of them kept.

    Args:
        space: where the candidates are from; the loop nest of a space of schedules is its own.
        problem: what they compute.
    """

    def __init__(self, space: Any, problem: Problem) -> None:
        self._problem = problem
        self._knobs = {knob.name: knob for knob in getattr(space, "knobs", problem.knobs)}
        self._procedure: Procedure | None = getattr(space, "procedure", None)
        self._schedules: tuple[Schedules, ...] | None = None
        self._known: dict[str, str] = {}

    def of(self, candidate: Candidate) -> str:
        """The form of a candidate, which need not be in the space."""
        found = self._known.get(candidate.key)
        if found is None:
            found = self._known[candidate.key] = self._form(candidate)
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return found

    def _form(self, candidate: Candidate) -> str:
        match candidate.language:
            case Language.KNOBS:
                return self._of_knobs(candidate.knobs)
            case Language.SCHEDULE:
                steps = (step for step in candidate.payload if isinstance(step, Directive))
                return self._of_trace(tuple(steps))
            case Language.SOURCE | Language.TEMPLATE:
                return source_form(str(candidate.payload))
        return f"{candidate.language}:{candidate.key}"

    def _of_knobs(self, given: Mapping[str, Scalar]) -> str:
        values = {
            **dict(self._problem.unscheduled),
            **{name: as_declared(self._knobs.get(name), value) for name, value in given.items()},
        }
        template, sketch = self._problem.template, self._problem.sketch
        if (template is not None or sketch is not None) and self._are_all(values):
            if template is not None:
                return macro_form(template, values)
            if sketch is not None:
                return self._of_trace(sketch(values))
        return f"knobs:{_compact(values)}"

    def _are_all(self, values: Mapping[str, Scalar]) -> bool:
        """Whether these are a value of each knob."""
        return set(values) == set(self._knobs) and all(
            _has(self._knobs[name], value) for name, value in values.items()
        )

    def _of_trace(self, trace: Trace) -> str:
        """The loop nests of all workloads; of what may not be applied, or has no loops here, the
        directives.
        """
        try:
            nests = [loop_text(each.after(trace)) for each in self._nests()]
        except CompilerError:
            nests = []
        return f"loops:{_digest(*nests)}" if nests else f"trace:{_digest(print_trace(trace))}"

    def _nests(self) -> tuple[Schedules, ...]:
        if self._schedules is None:
            self._schedules = tuple(map(schedules_of, self._procedures()))
        return self._schedules

    def _procedures(self) -> Sequence[Procedure]:
        if self._procedure is not None:
            return (self._procedure,)
        if self._problem.definition is None:
            return ()
        try:
            return [self._problem.definition(workload) for workload in self._problem.workloads]
        except ValueError:
            return ()  # extents in ranges: there is no one loop nest


def source_form(text: str) -> str:
    """The form of a C text: its tokens, locals without names; where those do not tell which program
    it is, every byte.
    """
    try:
        return f"c:{_digest(*without_names(tokens(text)))}"
    except UnsureError:
        return f"text:{_digest(text)}"


def macro_form(template: str, values: Mapping[str, Scalar]) -> str:
    """The form of a template under values of its macros: the text, and what differs from its own
    fallbacks.
    """
    return f"macros:{_digest(template, _compact(macros_set(template, values)))}"


def macros_set(template: str, values: Mapping[str, Scalar]) -> dict[str, str]:
    """The macros that are not what a template defines itself where nobody else does."""
    own = fallbacks(template)
    given = {name: macro_text(value) for name, value in values.items()}
    return {name: value for name, value in given.items() if own.get(name) != value}


def fallbacks(template: str) -> dict[str, str]:
    """The macros that a C text defines itself where nobody else has, with their values
    (``#ifndef X`` / ``#define X 1``).
    """
    return dict(_FALLBACK.findall(template))


def macro_text(value: Scalar) -> str:
    """A knob's value as a macro's text."""
    return str(int(value) if isinstance(value, bool) else value)


def as_declared(knob: Knob | None, value: Scalar) -> Scalar:
    """``32`` for ``32.0`` where a knob has that: JSON has one kind of number. Anything else stays
    as it is, and the space says what is wrong with it.
    """
    if knob is not None and isinstance(value, float | int) and not isinstance(value, bool):
        if value in knob.values and type(knob.values[knob.values.index(value)]) is type(value):
            return value
        for known in knob.values:
            if isinstance(known, float | int) and not isinstance(known, bool) and known == value:
                return known
    return value


def _has(knob: Knob, value: Scalar) -> bool:
    return any(type(known) is type(value) and known == value for known in knob.values)


def _compact(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _digest(*parts: str) -> str:
    """A hash of some texts that tells where each ends."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
