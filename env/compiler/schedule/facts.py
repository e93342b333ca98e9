"""What is known where a statement runs, and what follows from it: conditions that always or never
hold, the lesser of two expressions, loops whose guard only cuts them short.

isl decides. A condition that is not affine stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import islpy as isl

from kernelwright.env.compiler.ir.linear import linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
    children,
    rebuild,
    walk,
)
from kernelwright.env.compiler.ir.queries import is_total, mentions
from kernelwright.env.compiler.ir.simplify import EMPTY, FALSE, TRUE, simplify
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.normal import is_index

_OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_DECIDABLE = (*_OPPOSITE, "and", "or")


@dataclass(frozen=True, slots=True)
class Facts:
    """Conditions that hold where a statement runs; extents are never negative.

    ``fixed`` are variables that stand for numbers read from memory that does not
    change meanwhile; nothing is known of them.
    """

    extents: tuple[str, ...]
    variables: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()

    def inside(self, loop: For) -> Facts:
        """What also holds in the body of a loop."""
        name = isl_name(loop.var)
        limit = affine_text(loop.extent)
        known = (f"{name} >= 0", *(() if limit is None else (f"{name} < {limit}",)))
        return replace(
            self, variables=(*self.variables, loop.var), conditions=(*self.conditions, *known)
        )

    def given(self, condition: Expr) -> Facts:
        """What also holds where a condition does."""
        text = condition_text(condition)
        return self if text is None else replace(self, conditions=(*self.conditions, text))

    def decide(self, condition: Expr) -> bool | None:
        """Whether a condition always holds (True) or never does (False); None if neither is known.

        Where nothing ever runs, everything holds.
        """
        match simplify(condition):
            case Const(value, "bool"):
                return bool(value)
            case node:
                text = condition_text(node)
        return None if text is None else _decided(self, text)

    def exceptions(self, condition: Expr) -> isl.Set | None:
        """Where a condition does not hold, None if it is not affine."""
        text = condition_text(condition)
        return None if text is None else _points(self).subtract(self.space((text,)))

    def never(self) -> bool:
        """Whether nothing ever runs here."""
        return bool(_points(self).is_empty())

    def space(self, conditions: tuple[str, ...]) -> isl.Set:
        """The extents and iterations for which conditions hold."""
        parameters = f"[{', '.join(map(isl_name, self.extents))}] -> " if self.extents else ""
        space = f"[{', '.join(map(isl_name, (*self.fixed, *self.variables)))}]"
        text = " and ".join(f"({part})" for part in conditions)
        return isl.Set(f"{parameters}{{ {space}{' : ' + text if text else ''} }}")

    def least(self, left: Expr, right: Expr) -> Expr:
        """``min(left, right)``, or the one that is known to be the lesser."""
        if self.decide(Binary("le", left, right)):
            return left
        if self.decide(Binary("le", right, left)):
            return right
        return simplify(Binary("min", left, right))

    def greatest(self, left: Expr, right: Expr) -> Expr:
        """``max(left, right)``, or the one that is known to be the greater."""
        if self.decide(Binary("ge", left, right)):
            return left
        if self.decide(Binary("ge", right, left)):
            return right
        return simplify(Binary("max", left, right))


@lru_cache(maxsize=256)
def _points(facts: Facts) -> isl.Set:
    known = tuple(f"{isl_name(extent)} >= 0" for extent in facts.extents)
    return facts.space((*known, *facts.conditions))


@lru_cache(maxsize=4096)
def _decided(facts: Facts, text: str) -> bool | None:
    points, holds = _points(facts), facts.space((text,))
    if points.is_subset(holds):
        return True
    return False if points.is_disjoint(holds) else None


def opposite(condition: Expr) -> Expr:
    """The condition that holds where this one does not, without a ``not`` where there is a way."""
    match condition:
        # Of floats, not (a < b) is no a >= b: there are NaNs.
        case Binary(op, left, right) if op in _OPPOSITE and is_index(left):
            return Binary(_OPPOSITE[op], left, right)
        case Binary("and" | "or" as op, left, right):
            return Binary("or" if op == "and" else "and", opposite(left), opposite(right))
        case Unary("not", operand):
            return operand
    return FALSE if condition == TRUE else Unary("not", condition)


def facts_at(procedure: Procedure, loop: str) -> Facts:
    """What is known where a loop of a procedure begins."""

    def find(node: Stmt, facts: Facts) -> Facts | None:
        match node:
            case For(var, _, body, _):
                return facts if var == loop else find(body, facts.inside(node))
            case If(condition, then):
                return find(then, facts.given(condition))
            case While(condition, body):
                return find(body, facts.given(condition))
            case Allocate(_, body) | Call(_, body):
                return find(body, facts)
            case Block(items):
                return next((f for item in items if (f := find(item, facts)) is not None), None)
        return None

    facts = find(procedure.body, Facts(procedure.extents))
    assert facts is not None
    return facts


def simplified(node: Stmt, facts: Facts) -> Stmt:
    """The statement without conditions that are decided where it runs."""
    match node:
        case For(var, extent, body, kind):
            extent = _expression(extent, facts)
            loop = For(var, extent, body, kind)
            return _lifted(replace(loop, body=simplified(body, facts.inside(loop))), facts)
        case If(condition, then):
            condition = _expression(condition, facts)
            if condition in (TRUE, FALSE):
                return simplified(then, facts) if condition == TRUE else EMPTY
            return If(condition, simplified(then, facts.given(condition)))
        case Block(items):
            return Block(tuple(simplified(item, facts) for item in items))
        case Allocate(tensor, body):
            return Allocate(tensor, simplified(body, facts))
        case Store():
            return replace(
                node,
                indices=tuple(_expression(index, facts) for index in node.indices),
                value=_expression(node.value, facts),
            )
        case _:
            return node


def _expression(node: Expr, facts: Facts) -> Expr:
    match node:
        case Select(condition, then, other):
            condition = _expression(condition, facts)
            if condition in (TRUE, FALSE):
                return _expression(then if condition == TRUE else other, facts)
            return Select(
                condition,
                _expression(then, facts.given(condition)),
                _expression(other, facts.given(opposite(condition))),
            )
        case Binary(op, left, right) if op in _DECIDABLE:
            decided = facts.decide(node)
            if decided is not None:
                return TRUE if decided else FALSE
            if op in ("and", "or"):
                left, right = _expression(left, facts), _expression(right, facts)
            return simplify(Binary(op, left, right))
        case Binary("min" | "max" as op, left, right) if is_index(node):
            left, right = _expression(left, facts), _expression(right, facts)
            return facts.least(left, right) if op == "min" else facts.greatest(left, right)
    operands = children(node)
    return rebuild(node, tuple(_expression(child, facts) for child in operands))


def _lifted(loop: For, facts: Facts) -> Stmt:
    """A loop around guards, with those that do not depend on it around it, and shortened where a
    guard asks for that: ``for v in e: if v < r: S`` runs the lesser of ``e`` and ``r`` times. An
    ``r`` that only another loop knows stays a guard.
    """
    outside: list[Expr] = []
    inside: list[Expr] = []
    body = loop.body
    while isinstance(body, If) and is_total(body.condition):
        limit = _limit(body.condition, loop, (*facts.extents, *facts.fixed))
        if not mentions(body.condition, loop.var):
            outside.append(body.condition)
        elif limit is not None:
            loop = replace(loop, extent=facts.least(loop.extent, limit))
        else:
            inside.append(body.condition)
        body = body.then
    for condition in reversed(inside):
        body = If(condition, body)
    out: Stmt = replace(loop, body=body)
    for condition in reversed(outside):
        out = If(condition, out)
    return out


def _limit(condition: Expr, loop: For, known: tuple[str, ...]) -> Expr | None:
    """The extent that a condition leaves a serial loop, in terms of what is ``known`` outside all
    loops; None if it is no such condition.
    """
    if loop.kind is not LoopKind.SERIAL:
        return None
    match condition:
        case Binary("lt", left, right):
            rest = linear(right).plus(linear(left), -1)
            if rest.factor(loop.var) == -1 and not rest.hidden(loop.var):
                limit = rest.without(loop.var).expression()
                if all(part.name in known for part in walk(limit) if isinstance(part, Var)):
                    return limit
    return None
