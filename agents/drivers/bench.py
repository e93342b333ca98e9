"""A program under work and the tools that a model works on it with.

What a tool says is a function of the program, the space and what was told, so a search that runs
again computes it again and finds the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.context.safe import clean
from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.marks import Action
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.schedule.trace import TraceError, parse_trace, print_trace
from kernelwright.env.protocols import explained
from kernelwright.env.types import Candidate, Directive, Language

MOST_LISTED = 40
MOST_SHOWN = 6000
OPTIONAL = "the program may be left out, then it is the one under work"


class ToolError(Exception):
    """A call that cannot be carried out; the message says why, to whoever called."""


class Bench:
    """One program and its history.

    Args:
        space: where it lies.
        dialect: how it is written.
        start: the program to begin with.
        estimate: what is expected of a program, as a sentence.
    """

    def __init__(
        self,
        space: Any,
        dialect: Dialect,
        start: Candidate,
        estimate: Callable[[Candidate], str],
    ) -> None:
        self._space, self._dialect, self._expect = space, dialect, estimate
        self._states = [start]

    @property
    def current(self) -> Candidate:
        """The program as it is now."""
        return self._states[-1]

    def tools(self) -> list[tuple[str, str]]:
        """How each tool is called, and what it does."""
        apply = {
            Language.KNOBS: ("apply(changes)", 'set knobs, as `{"changes": {KNOB: VALUE}}`'),
            Language.SCHEDULE: ("apply(directive)", 'add one, as `{"directive": TEXT}`'),
        }
        known = [apply[self._space.language]] if self._space.language in apply else []
        listed = [("list()", "the changes that are legal now, as arguments of apply")]
        return [
            *(listed if known else []),
            *known,
            ("write(program)", 'put a whole program in its place, as `{"program": TEXT}`'),
            ("undo()", "take the last change back"),
            ("show()", "what the program is now"),
            ("estimate(program)", f"what a model expects; costs nothing, may be wrong; {OPTIONAL}"),
        ]

    def call(self, action: Action) -> str:
        """What a tool says.

        Raises:
            ToolError: if there is no such tool, or it refuses.
        """
        names = [call.partition("(")[0] for call, _ in self.tools()]
        if action.tool not in names:
            raise ToolError(f"expected one of the tools {', '.join(names)}, measure, submit")
        said: str = getattr(self, f"_{action.tool}")(action.arguments)
        return said

    def _list(self, arguments: Mapping[str, Any]) -> str:
        _only(arguments)
        moves = self._moves()
        # Some of each kind, where there are too many.
        step = -(-len(moves) // MOST_LISTED) if moves else 1
        shown = [f"- `{json.dumps(move)}`" for move in moves[::step]]
        left = len(moves) - len(shown)
        return "\n".join([*shown, *([f"and {left} more"] if left else [])]) or "nothing"

    def _moves(self) -> Sequence[Mapping[str, Any]]:
        if self._space.language is Language.SCHEDULE:
            legal: Sequence[Directive] = self._space.legal_moves(self.current)
            return [{"directive": print_trace((move,)).strip()} for move in legal]
        here = self.current.knobs
        near = [other.knobs for other in self._space.neighbours(self.current)]
        return [
            {"changes": {name: value for name, value in other.items() if value != here[name]}}
            for other in near
        ]

    def _apply(self, arguments: Mapping[str, Any]) -> str:
        if self._space.language is Language.SCHEDULE:
            (text,) = _only(arguments, "directive")
            try:
                trace = (*self.current.payload, *parse_trace(str(text)))
                return self._take(Candidate(Language.SCHEDULE, trace))
            except (TraceError, ValueError) as error:
                raise ToolError(str(error)) from None
        changes = arguments.get("changes", arguments)
        if not isinstance(changes, Mapping) or not changes:
            raise ToolError('expected {"changes": {KNOB: VALUE}}')
        return self._read(json.dumps(self.current.knobs | dict(changes)))

    def _write(self, arguments: Mapping[str, Any]) -> str:
        (text,) = _only(arguments, "program")
        return self._read(text if isinstance(text, str) else json.dumps(text))

    def _read(self, text: str) -> str:
        found = self._dialect.parse(fenced(text, self._dialect.fence))
        if isinstance(found, Malformed):
            raise ToolError(found.reason)
        return self._take(found)

    def _take(self, found: Candidate) -> str:
        violations = explained(self._space, found)
        if violations:
            raise ToolError("; ".join(v.reason for v in violations[:4]))
        self._states.append(self._space.canonical(found))
        return "done"

    def _undo(self, arguments: Mapping[str, Any]) -> str:
        _only(arguments)
        if len(self._states) == 1:
            raise ToolError("nothing was changed")
        self._states.pop()
        return "done"

    def _show(self, arguments: Mapping[str, Any]) -> str:
        _only(arguments)
        if self._space.language is Language.SCHEDULE:
            text, mark = print_procedure(self._space.scheduled(self.current)), "text"
        else:
            text, mark = self._dialect.show(self.current), self._dialect.fence
        return fenced(clean(text[:MOST_SHOWN]), mark)

    def _estimate(self, arguments: Mapping[str, Any]) -> str:
        self.place(arguments)
        return self._expect(self.current)

    def place(self, arguments: Mapping[str, Any]) -> None:
        """Put a program into the place of the current one, if the arguments hold one.

        Raises:
            ToolError: if they hold anything else, or it cannot be read or is not in the space.
        """
        if arguments:
            self._write(arguments)


def _only(arguments: Mapping[str, Any], *names: str) -> list[Any]:
    """The values of exactly these arguments."""
    if set(arguments) != set(names):
        wanted = ", ".join(names) or "no argument"
        raise ToolError(f"expected {wanted}, found {', '.join(map(str, arguments)) or 'none'}")
    return [arguments[name] for name in names]
