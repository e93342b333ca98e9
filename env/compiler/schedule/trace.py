"""Schedules as data: applying a trace of directives, printing it as Python and reading it back.

``split('i', 8)`` is `Directive("split", "i", (8,))`: the first argument is the loop that a
directive is about. Decisions (`decision`) are lines of the same form.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module

from kernelwright.env.compiler.errors import CompilerError, ScheduleError, did_you_mean
from kernelwright.env.compiler.ir.nodes import (
    For,
    Origin,
    Procedure,
    Stmt,
    loops,
    map_statements,
)
from kernelwright.env.compiler.poly.limits import MAX_ANSWER_OPERATIONS, LimitError, limited
from kernelwright.env.compiler.schedule import FRONT_END_DIRECTIVES, known_directives
from kernelwright.env.compiler.schedule.decision import read_decision
from kernelwright.env.compiler.schedule.whole import check_whiles
from kernelwright.env.types import Directive, Scalar

Trace = tuple[Directive, ...]
# What leaves iterations that touch no other's elements as they are: it adds no storage, and moves
# nothing out of a loop.
KEEP_APART = ("parallel", "unroll", "vectorize", "split", "reassociate")


def directive_function(op: str) -> Callable[..., Procedure]:
    """The function of a directive.

    Raises:
        ScheduleError: if there is none; it lists the known ones and the nearest.
    """
    known = known_directives()
    if op not in known:
        hint = did_you_mean(op, known)
        raise ScheduleError(op, f"expected one of {', '.join(known)}, found {op!r}{hint}")
    module, _, name = known[op].partition(":")
    function: Callable[..., Procedure] = getattr(import_module(module), name)
    return function


def apply(procedure: Procedure, directive: Directive) -> Procedure:
    """The procedure after one directive; a decision leaves it as it is. One on loops leaves no
    origin, so that those of a front end come before.

    Raises:
        ScheduleError: if the directive does not exist, has other arguments, or may not be applied
            here, or isl does not come to an end of whether it may; if it is a front end's, and the
            procedure has no origin; or if a decision is not in its domain.
    """
    if directive.is_decision:
        read_decision(directive)
        return procedure
    function = directive_function(directive.op)
    is_front_end = directive.op in FRONT_END_DIRECTIVES
    if directive.op not in KEEP_APART:
        procedure = _nothing_apart(procedure)
    subject: Procedure | Origin = procedure
    if is_front_end:
        if procedure.origin is None:
            expected = "a procedure of the sparse front end before any loop directive"
            raise ScheduleError(directive.op, f"expected {expected}")
        subject = procedure.origin
    else:
        check_whiles(directive.op, procedure)
    signature = inspect.signature(function)
    try:
        bound = signature.bind(subject, directive.target, *directive.args)
    except TypeError as error:
        taken = ", ".join(list(signature.parameters)[1:])
        raise ScheduleError(directive.op, f"{error} of {directive.op}({taken})") from None
    try:
        with limited("whether it may be applied", MAX_ANSWER_OPERATIONS):
            found = function(*bound.args, **bound.kwargs)
    except LimitError as error:
        raise ScheduleError(directive.op, str(error)) from None
    return found if is_front_end or found.origin is None else replace(found, origin=None)


def _nothing_apart(procedure: Procedure) -> Procedure:
    """The procedure without what somebody vouched for: a directive may have iterations share what
    they did not.
    """
    if not any(loop.apart for loop in loops(procedure)):
        return procedure

    def forget(node: Stmt) -> Stmt:
        return replace(node, apart=False) if isinstance(node, For) else node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, forget))


def steps(
    procedure: Procedure, trace: Sequence[Directive]
) -> Iterator[tuple[Directive, Procedure]]:
    """Each directive with the procedure after it."""
    for directive in trace:
        procedure = apply(procedure, directive)
        yield directive, procedure


def apply_trace(procedure: Procedure, trace: Sequence[Directive]) -> Procedure:
    """The procedure after a whole trace.

    Raises:
        ScheduleError: at the first directive that may not be applied.
    """
    for directive in trace:
        procedure = apply(procedure, directive)
    return procedure


def print_trace(trace: Sequence[Directive]) -> str:
    """The trace as Python, one call a line."""
    return "".join(f"{d.op}({', '.join(map(repr, (d.target, *d.args)))})\n" for d in trace)


class TraceError(CompilerError):
    """Text that is not a trace; the message has the line."""


def parse_trace(text: str) -> Trace:
    """The trace in a text that `print_trace` wrote, or a person in its manner.

    Raises:
        TraceError: with the line, if it is not a list of calls on literals.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise TraceError(f"line {line}: expected directives, found {error}") from None
    return tuple(_directive(node) for node in tree.body)


def _directive(node: ast.stmt) -> Directive:
    match node:
        case ast.Expr(ast.Call(ast.Name(op), _, [named, *_])):
            found = ast.unparse(named)
            raise TraceError(
                f"line {node.lineno}: expected values by place in {op}(…), found {found}"
            )
        case ast.Expr(ast.Call(ast.Name(op), arguments, [])):
            values = [_literal(argument) for argument in arguments]
            if not values or not isinstance(values[0], str):
                raise TraceError(f"line {node.lineno}: expected a loop's name first in {op}(…)")
            return Directive(op, values[0], tuple(values[1:]))
    raise TraceError(f"line {node.lineno}: expected a call like split('i', 8), found other code")


def _literal(node: ast.expr) -> Scalar:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = None
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if not isinstance(value, bool | int | float | str) or is_infinite:
        wanted = "a finite number" if is_infinite else "a number or text"
        raise TraceError(f"line {node.lineno}: expected {wanted}, found {ast.unparse(node)}")
    return value
