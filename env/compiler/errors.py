"""The compiler's errors. They carry what a searcher needs: which directive or node, what was
expected, what was found.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelwright.env.options import nearest


class CompilerError(Exception):
    """Anything the compiler refuses."""


class VerifyError(CompilerError):
    """A procedure that is not well formed; ``where`` is the path of nodes from the procedure
    down.
    """

    def __init__(self, where: str, expected: str, found: str) -> None:
        super().__init__(f"{where}: expected {expected}, found {found}")
        self.where, self.expected, self.found = where, expected, found


class ScheduleError(CompilerError):
    """A directive that may not be applied: which one, why, and where there is one the iterations it
    would break.
    """

    def __init__(self, op: str, reason: str, conflict: str | None = None) -> None:
        super().__init__(f"{op}: {reason}" + (f" ({conflict})" if conflict else ""))
        self.op, self.reason, self.conflict = op, reason, conflict


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message about a name that is none of the known ones: the one most like it."""
    near = nearest(str(name), known)
    return f"; did you mean {near!r}?" if near else ""
