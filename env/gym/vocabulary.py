"""The actions of schedule search: a fixed, finite list of directives by the place of a loop.

An action is a loop's place in program order times a template, or the last one: undo. What an action
means depends on the loops that are there; whether it is legal is the compiler's answer, but for two
rules that keep episodes finite: a split makes blocks smaller than the loop, and there are at most
`MAX_LOOPS` loops.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    For,
    LoopKind,
    Procedure,
    Stmt,
    loops,
    map_statements,
)
from kernelwright.env.compiler.ir.path import next_inside
from kernelwright.env.compiler.poly.dependence import Dependences
from kernelwright.env.compiler.poly.limits import LimitError
from kernelwright.env.compiler.schedule.edit import constant_extent, find_loop
from kernelwright.env.compiler.schedule.kind import LANES
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import apply, print_trace
from kernelwright.env.types import Directive

MAX_LOOPS = 16
SPLITS = (2, 4, 8, 16, 32, 64)
TEMPLATES: tuple[str | int, ...] = (
    *SPLITS,
    "unroll",
    "vectorize",
    "parallel",
    "reorder",
    "fuse",
)
ACTIONS = MAX_LOOPS * len(TEMPLATES) + 1
UNDO = ACTIONS - 1
Trace = tuple[Directive, ...]


class IllegalActionError(Exception):
    """An action that may not be taken; it names the directive, and says why."""


def action_name(action: int) -> str:
    """An action in words: ``loop 2: split 8``."""
    if action == UNDO:
        return "undo"
    place, template = divmod(action, len(TEMPLATES))
    made = TEMPLATES[template]
    return f"loop {place}: {f'split {made}' if isinstance(made, int) else made}"


def directive_of(procedure: Procedure, action: int) -> Directive:
    """The directive that an action other than undo means here.

    Raises:
        IllegalActionError: if there is no such loop, or it breaks a rule of this list.
    """
    found = loops(procedure)
    place, template = divmod(action, len(TEMPLATES))
    made = TEMPLATES[template]
    if place >= len(found):
        raise IllegalActionError(f"{action_name(action)}: expected one of {len(found)} loops")
    loop = found[place]
    if isinstance(made, int):
        directive = Directive("split", loop.var, (made,))
        extent = constant_extent(loop)
        if extent is not None and made >= extent:
            reason = f"expected a factor below the extent {extent}"
            raise IllegalActionError(f"{_shown(directive)}: {reason}")
        if len(found) >= MAX_LOOPS:
            raise IllegalActionError(f"{_shown(directive)}: expected at most {MAX_LOOPS} loops")
        return directive
    if made in ("reorder", "fuse"):
        inner = next_inside(loop)
        if inner is None:
            raise IllegalActionError(f"{made} {loop.var}: expected a loop directly inside it")
        if made == "reorder":
            return Directive("reorder", inner.var, (loop.var,))
        return Directive("fuse", loop.var, (inner.var,))
    return Directive(made, loop.var)


def _shown(directive: Directive) -> str:
    return print_trace((directive,)).strip()


def take(schedules: Schedules, trace: Trace, action: int) -> Trace:
    """The trace after an action.

    Raises:
        IllegalActionError: if it may not be taken.
    """
    if action == UNDO:
        if not trace:
            raise IllegalActionError("undo: expected a directive, found an empty trace")
        return trace[:-1]
    directive = directive_of(schedules.after(trace), action)
    after = (*trace, directive)
    try:
        schedules.after(after)
    except ScheduleError as error:
        conflict = f" ({error.conflict})" if error.conflict else ""
        raise IllegalActionError(f"{_shown(directive)}: {error.reason}{conflict}") from None
    return after


def legal_actions(schedules: Schedules, trace: Trace) -> list[int]:
    """The actions that may be taken after a trace.

    As `take` would answer one by one, in less time: the dependences of the procedure are computed
    once for all its loops, and directives that keep the order of iterations are tried without
    proving again what is parallel or vectorized already.
    """
    procedure = schedules.after(trace)
    dependences, plain = Dependences(procedure), _without_proofs(procedure)

    def is_legal(action: int) -> bool:
        try:
            directive = directive_of(procedure, action)
            match directive.op:
                case "vectorize" | "parallel":
                    loop = find_loop(directive.op, procedure, directive.target)
                    fits = directive.op == "parallel" or constant_extent(loop) in LANES
                    serial = loop.kind is LoopKind.SERIAL
                    return fits and serial and dependences.carried_by(loop.var) is None
                case "reorder":
                    schedules.after((*trace, directive))
                case _:
                    apply(plain, directive)
        except (IllegalActionError, LimitError, ScheduleError):
            return False
        return True

    places = min(MAX_LOOPS, len(loops(procedure)))
    out = [action for action in range(places * len(TEMPLATES)) if is_legal(action)]
    return [*out, UNDO] if trace else out


def _without_proofs(procedure: Procedure) -> Procedure:
    """The procedure with every loop that needs a proof unrolled instead: not serial, and always
    legal.
    """

    def rewrite(node: Stmt) -> Stmt:
        if isinstance(node, For) and node.kind in (LoopKind.PARALLEL, LoopKind.VECTORIZED):
            return replace(node, kind=LoopKind.UNROLLED)
        return node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, rewrite))
