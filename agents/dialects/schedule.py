"""Schedules as directives in Python's syntax, one call a line, or as edits of the parent's."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects.dialect import Edits
from kernelwright.agents.dialects.fences import answer_block
from kernelwright.agents.dialects.steps import Misstep, apply_steps, read_steps
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.schedule import (
    FRONT_END_DIRECTIVES,
    GROUPS,
    known_directives,
)
from kernelwright.env.compiler.schedule.decision import without_decisions
from kernelwright.env.compiler.schedule.trace import (
    TraceError,
    directive_function,
    parse_trace,
    print_trace,
)
from kernelwright.env.spaces.novelty import Forms
from kernelwright.env.spaces.schedule import ProgramSpace
from kernelwright.env.spaces.schedule.further import all_further, of_statement
from kernelwright.env.types import Candidate, Directive, Language, Problem

HINTS = (
    "change one factor of the parent's schedule",
    "keep more results in registers: more unrolled rows, or more vectors in a row",
    "change the order of the loops",
    "block for a cache outside what the parent has",
    "make the parent's schedule simpler, and its innermost loop longer",
    "schedule another way than anything listed",
)
# What most schedules are made of.
IN_FULL = ("split", "fuse", "reorder", "tile", "unroll", "vectorize", "parallel")
# Over the directives of a front end in a prompt.
FRONT_END = "of the statement itself, before all others"
PYTHON_MARKS = ("python", "py")
STEP_MARKS = ("steps",)
_STEPS = re.compile(r"^[ \t]*(?:insert|replace|delete)[ \t]+\d", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DirectiveHelp:
    """A directive as a model is told of it: how it is called, and its documentation."""

    call: str
    text: str


class Schedule:
    """The dialect of a space of schedules over one procedure."""

    name = "schedule"
    fence = "python"
    hints = HINTS

    def __init__(self, space: Any, problem: Problem, *, edits: Edits = "whole") -> None:
        self._space, self._edits = space, edits
        self._forms = Forms(space, problem)

    @property
    def _told(self) -> tuple[str, ...]:
        """The directives that are told in full: what every schedule is made of, and what the
        space names.
        """
        named = getattr(self._space, "named", ())
        return tuple(op for op in known_directives() if op in IN_FULL or op in named)

    def _others(self) -> list[tuple[str, list[DirectiveHelp]]]:
        """The other directives by group, in a line each."""
        told = self._told
        groups = [
            (group, [directive_line(op) for op in ops if op not in told])
            for group, ops in GROUPS.items()
        ]
        if self._space.procedure.origin is not None:
            lines = [directive_line(op) for op in FRONT_END_DIRECTIVES if op not in told]
            groups.insert(0, (FRONT_END, lines))
        return [(group, lines) for group, lines in groups if lines]

    def _offered(self) -> list[str]:
        """What may be tried on the statement that the loops were lowered from, a few of each."""
        procedure = self._space.procedure
        return print_trace(all_further(procedure, of_statement(procedure))).splitlines()

    def facts(self) -> Mapping[str, Any]:
        """The loop nest, the directives (what is used most in full, the others in a line), what a
        statement proposes, what the machine offers, and how an answer is given.
        """
        return {
            "nest": print_procedure(self._space.procedure),
            "directives": [directive_help(op) for op in self._told],
            "others": self._others(),
            "offered": self._offered(),
            "threads": self._space.threads,
            "lanes": self._space.lanes,
            "edits": self._edits,
            "decides": isinstance(self._space, ProgramSpace),
        }

    def start(self) -> Candidate | None:
        """The empty schedule: the loops as they are written; or where a program writes schedules
        one of its own, whose decisions can be edited.
        """
        space = self._space
        return space.start if isinstance(space, ProgramSpace) else Candidate(Language.SCHEDULE, ())

    def show(self, candidate: Candidate) -> str:
        """One directive a line, with its number where edits need it, and with the decisions that
        it came from where a program wrote it.
        """
        lines = print_trace(_trace(candidate)).splitlines()
        notes = ("",) * len(lines)
        if isinstance(self._space, ProgramSpace):
            notes = self._space.comments(candidate)
        if self._edits != "whole":
            notes = tuple(f"{n} {note}".strip() for n, note in enumerate(notes, start=1))
        lines = [
            f"{line}  # {note}" if note else line for line, note in zip(lines, notes, strict=True)
        ]
        text = "".join(f"{line}\n" for line in lines)
        return text or "# no directive: the loops as they are written\n"

    def brief(self, candidate: Candidate) -> str:
        """All directives in one line, without decisions."""
        steps = without_decisions(_trace(candidate))
        return "; ".join(print_trace(steps).splitlines()) or "pass"

    def form(self, candidate: Candidate) -> str:
        """The loop nest that the directives lead to."""
        return self._forms.of(candidate)

    def parse(self, reply: str, parent: Candidate | None = None) -> Candidate | Malformed:
        """The directives in the reply's block, or the parent's after its edits."""
        marks = {"whole": PYTHON_MARKS, "search_replace": STEP_MARKS + PYTHON_MARKS}
        text = answer_block(reply, marks.get(self._edits, PYTHON_MARKS + STEP_MARKS))
        if isinstance(text, Malformed):
            return text
        if self._edits == "search_replace" or (self._edits == "either" and _STEPS.search(text)):
            return self._edited(text, parent)
        try:
            return self._carried_out(Candidate(Language.SCHEDULE, parse_trace(text)), parent)
        except TraceError as error:
            kind = "wrong_schema" if _is_python(text) else "unparsable"
            return Malformed(kind, f"{error}")
        except ValueError as error:
            return Malformed("wrong_schema", str(error)[:200])

    def _edited(self, text: str, parent: Candidate | None) -> Candidate | Malformed:
        """The parent after the edits of a block; none of them where one does not fit."""
        steps = read_steps(text)
        if isinstance(steps, Misstep):
            return Malformed("unparsable", steps.reason[:600])
        found = apply_steps(() if parent is None else _trace(parent), steps)
        if isinstance(found, Misstep):
            return Malformed("wrong_schema", f"{found.kind}: {found.reason}"[:600])
        try:
            return self._carried_out(Candidate(Language.SCHEDULE, found), parent)
        except ValueError as error:
            return Malformed("wrong_schema", str(error)[:200])

    def _carried_out(self, found: Candidate, parent: Candidate | None) -> Candidate | Malformed:
        """What the program of the space writes, if an answer changed only the decisions that the
        parent records; else the answer.
        """
        space, decided = self._space, any(step.is_decision for step in _trace(found))
        if parent is None or found != parent or found.payload == parent.payload or not decided:
            return found
        if not isinstance(space, ProgramSpace):
            return found
        try:
            return space.revised(found, parent)
        except CompilerError as error:
            return Malformed("wrong_schema", f"with these decisions: {error}"[:600])

    def schema(self) -> Mapping[str, Any] | None:
        """None: directives are no JSON."""
        return None


def directive_help(op: str) -> DirectiveHelp:
    """How a directive is called and what it does, with the nest before and after."""
    function = directive_function(op)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    shown = []
    for parameter in parameters:
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        shown.append(f"{star}{parameter.name}{default}")
    text = inspect.getdoc(function) or ""
    return DirectiveHelp(f"{op}({', '.join(shown)})", text.partition("\nRaises:")[0].strip())


def directive_line(op: str) -> DirectiveHelp:
    """How a directive is called, and the first thing that its documentation says."""
    told = directive_help(op)
    start = " ".join(told.text.partition("\n\n")[0].split())
    plain = re.sub(r" \([^()]*\)", "", start)  # whose word it is
    first = re.split(r"[.;:](?:\s|$)", plain, maxsplit=1)[0]
    return DirectiveHelp(told.call, first)


def _trace(candidate: Candidate) -> tuple[Directive, ...]:
    return tuple(step for step in candidate.payload if isinstance(step, Directive))


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
