"""Specialization: a copy of the code for the case that something is known of the extents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    If,
    Procedure,
    Stmt,
    Var,
    map_statements,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.schedule.conditions import parse_condition
from kernelwright.env.compiler.schedule.copies import copied, renamed
from kernelwright.env.compiler.schedule.edit import find_loop, finish, replace_loop, taken_names
from kernelwright.env.compiler.schedule.facts import Facts, facts_at, opposite, simplified


def specialize(procedure: Procedure, condition: str, loop: str | None = None) -> Procedure:
    """Run a copy of the code where a condition on the extents holds (Halide ``specialize``). Always
    legal.

    ``condition`` is a text like ``"n % 8 == 0"`` or ``"n == 64 and m >= 8"``; what follows from it
    is used in the copy: guards vanish, and an extent that equals a number becomes that number. With
    ``loop`` only that loop is copied. The names of the copy's loops end with ``_special``; the
    general code keeps its own.

    Before::

        for io in (n + 7) // 8:
          for ii in 8:
            if io * 8 + ii < n:
              S(io * 8 + ii)

    After ``specialize("n % 8 == 0")``::

        if n % 8 == 0:
          for io_special in (n + 7) // 8:
            for ii_special in 8:
              S(io_special * 8 + ii_special)
        if n % 8 != 0:
          for io in (n + 7) // 8:
            ...

    Raises:
        ScheduleError: if the text is no condition on the extents, it holds always or never, or
            there is no such loop.
    """
    node = parse_condition("specialize", condition, procedure.extents)
    facts = Facts(procedure.extents)
    if loop is not None:
        find_loop("specialize", procedure, loop)
        facts = facts_at(procedure, loop)
    decided = facts.decide(node)
    if decided is not None:
        always = "always" if decided else "never"
        raise ScheduleError("specialize", f"{condition} {always} holds here")
    taken = taken_names(procedure)

    def in_two(general: Stmt) -> Stmt:
        special = _with_values(copied(general, "special", taken), _values(node))
        return Block(
            (
                If(node, simplified(special, facts.given(node))),
                If(opposite(node), simplified(general, facts.given(opposite(node)))),
            )
        )

    if loop is not None:
        return finish("specialize", replace_loop(procedure, loop, in_two))
    return finish("specialize", replace(procedure, body=_inside(procedure.body, in_two)))


def _inside(node: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    # Temporaries of the whole procedure stay around both copies.
    if isinstance(node, Allocate):
        return replace(node, body=_inside(node.body, change))
    return change(node)


def _values(condition: Expr) -> dict[str, Expr]:
    """The extents that equal a number where a condition holds."""
    match condition:
        case Binary("and", left, right):
            return {**_values(left), **_values(right)}
        case Binary("eq", Var(name), Const() as value) | Binary("eq", Const() as value, Var(name)):
            return {name: value}
    return {}


def _with_values(node: Stmt, values: dict[str, Expr]) -> Stmt:
    def statement(each: Stmt) -> Stmt:
        if isinstance(each, Allocate):
            shape = tuple(simplify(substitute(size, values)) for size in each.tensor.shape)
            return replace(each, tensor=replace(each.tensor, shape=shape))
        return each

    return map_statements(renamed(node, values, {}), lambda e: e, statement) if values else node
