"""From isl's piecewise quasi-affine expressions and sets back to LoopIR's expressions.

Pieces that are the least or the greatest of a few affine expressions become ``min`` and ``max``,
others a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import islpy as isl

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Select, Var
from kernelwright.env.compiler.ir.simplify import FALSE, TRUE, whole
from kernelwright.env.compiler.poly.model import isl_name, variable_name
from kernelwright.env.compiler.poly.sums import cancelled

# What isl writes in the expressions of its syntax trees.
AST_OPERATIONS: dict[object, str] = {
    isl.ast_expr_op_type.add: "add",
    isl.ast_expr_op_type.sub: "sub",
    isl.ast_expr_op_type.mul: "mul",
    isl.ast_expr_op_type.div: "floordiv",
    isl.ast_expr_op_type.fdiv_q: "floordiv",
    isl.ast_expr_op_type.pdiv_q: "floordiv",
    isl.ast_expr_op_type.pdiv_r: "mod",
    isl.ast_expr_op_type.zdiv_r: "mod",
    isl.ast_expr_op_type.min: "min",
    isl.ast_expr_op_type.max: "max",
    isl.ast_expr_op_type.eq: "eq",
    isl.ast_expr_op_type.le: "le",
    isl.ast_expr_op_type.lt: "lt",
    isl.ast_expr_op_type.ge: "ge",
    isl.ast_expr_op_type.gt: "gt",
    isl.ast_expr_op_type.and_then: "and",
    isl.ast_expr_op_type.or_else: "or",
}
# isl's stubs do not know the two operators whose names Python reserves.
AST_OPERATIONS[getattr(isl.ast_expr_op_type, "and_")] = "and"  # noqa: B009
AST_OPERATIONS[getattr(isl.ast_expr_op_type, "or_")] = "or"  # noqa: B009
_CHOICES = (isl.ast_expr_op_type.cond, isl.ast_expr_op_type.select)


def context_set(parameters: Sequence[str], conditions: Sequence[str]) -> isl.Set:
    """Values of parameters under conditions in isl's words."""
    names = ", ".join(map(isl_name, parameters))
    return isl.Set(f"[{names}] -> {{ : {' and '.join(conditions) or 'true'} }}")


@dataclass(frozen=True, slots=True)
class Extremum:
    """A value in a context: the least (``min``) or greatest (``max``) of affine expressions where
    ``terms`` are known, the piecewise one where they are empty.
    """

    op: str
    exact: isl.PwAff
    terms: tuple[isl.Aff, ...] = ()


Plain: TypeAlias = Callable[[], isl.Set] | None


def least(values: isl.Set, context: isl.Set, plain: Plain = None) -> Extremum:
    """The least number of a set, by its parameters; ``plain`` gives the set where nothing is known
    of them, if that is another.
    """
    return _bound(values, context, plain, "max", values.dim_min(0))


def greatest(values: isl.Set, context: isl.Set, plain: Plain = None) -> Extremum:
    """The greatest number of a set, by its parameters; ``plain`` gives the set where nothing is
    known of them, if that is another.
    """
    return _bound(values, context, plain, "min", values.dim_max(0))


def length(low: Extremum, high: Extremum) -> Extremum:
    """How many whole numbers lie between two bounds, both included."""
    one = isl.Val(1)
    exact = high.exact.sub(low.exact).add_constant_val(one).coalesce()
    differences = [
        upper.sub(lower).add_constant_val(one) for upper in high.terms for lower in low.terms
    ]
    return Extremum("min", exact, _needed(differences, "min", exact))


def _bound(values: isl.Set, context: isl.Set, plain: Plain, op: str, exact: isl.PwAff) -> Extremum:
    """A bound with terms that need no case distinction, if some are right.

    What is known of the parameters specialises a bound: that the last of three tiles of 16 ends at
    33 is as true as that every tile ends at the lesser of 33 and its start plus 15, and reads
    worse. So the terms are looked for in the constraints of the plain set first.
    """
    exact = exact.intersect_params(context).coalesce()
    pieces = [piece for _, piece in exact.get_pieces()]
    if len(pieces) > 1:
        terms = _needed(_constraints(values if plain is None else plain(), op), op, exact)
        terms = terms or _needed(pieces, op, exact)
        terms = terms or _needed(_constraints(values, op), op, exact)
        return Extremum(op, exact, terms)
    simpler = exact.gist_params(exact.domain()).get_pieces()
    return Extremum(op, exact, (simpler[0][1],))


def _constraints(values: isl.Set, op: str) -> list[isl.Aff]:
    """What bounds a set of numbers from above (``min``) or below (``max``)."""
    # What this loses makes the terms wrong at worst, and whether they are right is seen.
    values = values.remove_unknown_divs().remove_divs_involving_dims(isl.dim_type.set, 0, 1)
    found = []
    for constraint in values.simple_hull().get_constraints():
        bounds = constraint.is_upper_bound if op == "min" else constraint.is_lower_bound
        if bounds(isl.dim_type.set, 0):
            aff = constraint.get_bound(isl.dim_type.set, 0)
            aff = aff.floor() if op == "min" else aff.ceil()
            found.append(aff.drop_dims(isl.dim_type.in_, 0, 1).project_domain_on_params())
    return found


def _needed(affine: list[isl.Aff], op: str, exact: isl.PwAff) -> tuple[isl.Aff, ...]:
    """The expressions of which ``exact`` is the least (or the greatest), as few as will do; none if
    it is not.
    """
    if not affine or not _is_extremum(affine, op, exact):
        return ()
    needed = list(affine)
    for aff in affine:
        fewer = [other for other in needed if other is not aff]
        if fewer and _is_extremum(fewer, op, exact):
            needed = fewer
    return tuple(needed)


def _is_extremum(affine: list[isl.Aff], op: str, exact: isl.PwAff) -> bool:
    found = isl.PwAff.from_aff(affine[0])
    for aff in affine[1:]:
        other = isl.PwAff.from_aff(aff)
        found = found.min(other) if op == "min" else found.max(other)
    return bool(found.intersect_params(exact.domain()).is_equal(exact))


def from_extremum(value: Extremum) -> Expr:
    """A value as an expression, which is right where the value is defined."""
    domain = value.exact.domain()
    build = isl.AstBuild.from_context(domain)
    if value.terms:
        return _chain(value.op, [_from_affine(aff, build) for aff in value.terms])
    exact = value.exact.gist_params(domain).coalesce()
    return cancelled(_from_ast(build.expr_from_pw_aff(exact)))


def _from_affine(affine: isl.Aff, build: isl.AstBuild) -> Expr:
    return cancelled(_from_ast(build.expr_from_pw_aff(isl.PwAff.from_aff(affine))))


def _chain(op: str, items: list[Expr]) -> Expr:
    """Numbers first, so that a tile's size is what one reads first."""
    items = sorted(items, key=lambda item: not isinstance(item, Const))
    out = items[0]
    for item in items[1:]:
        out = Binary(op, out, item)
    return out


def from_set(values: isl.Set) -> Expr:
    """The condition that parameters are in a set."""
    build = isl.AstBuild.from_context(isl.Set.universe(values.get_space().params()))
    return cancelled(_condition(_from_ast(build.expr_from_set(values))))


def _condition(node: Expr) -> Expr:
    """A condition where isl writes it as a number."""
    if isinstance(node, Const) and node.dtype == "int64":
        return TRUE if node.value else FALSE
    return node


def _from_ast(node: isl.AstExpr) -> Expr:
    kind = isl.ast_expr_type(node.get_type())
    if kind == isl.ast_expr_type.int:
        return whole(node.get_val().to_python())
    if kind == isl.ast_expr_type.id:
        return Var(variable_name(node.get_id().get_name()))
    op = isl.ast_expr_op_type(node.get_op_type())
    arguments = [_from_ast(node.get_op_arg(i)) for i in range(node.get_op_n_arg())]
    if op in _CHOICES:
        return Select(_condition(arguments[0]), arguments[1], arguments[2])
    if op == isl.ast_expr_op_type.minus:
        return Binary("sub", whole(0), arguments[0])
    name = AST_OPERATIONS[op]
    if name == "mul" and isinstance(arguments[0], Const):
        arguments.reverse()
    if name in ("and", "or"):
        arguments = [_condition(each) for each in arguments]
    out = arguments[0]
    for each in arguments[1:]:
        out = Binary(name, out, each)
    return _comparison(out)


def _comparison(node: Expr) -> Expr:
    """``b < a`` for ``a >= b + 1``."""
    match node:
        case Binary("ge", left, Binary("add", right, Const(1, "int64"))):
            return Binary("lt", right, left)
    return node
