"""Copies of statements that stand beside the original, and temporaries that several iterations
share: what directives need that write a loop twice or cut it in two.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Const,
    Expr,
    For,
    Load,
    Prefetch,
    Stmt,
    Store,
    Tensor,
    Var,
    map_expression,
    map_statements,
    statements,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.schedule.defaults import copied_name

_SMALL = ("register", "stack")


def copied(node: Stmt, ending: str, taken: set[str]) -> Stmt:
    """The statement with new names for its loops and temporaries: ``i_tail`` for ``i``.

    ``taken`` gets the new names too.
    """
    variables: dict[str, Expr] = {}
    tensors: dict[str, str] = {}
    for each in statements(node):
        name = each.var if isinstance(each, For) else None
        name = each.tensor.name if isinstance(each, Allocate) else name
        if name is not None:
            new = copied_name(name, ending, taken)
            taken.add(new)
            if isinstance(each, For):
                variables[name] = Var(new)
            else:
                tensors[name] = new
    return renamed(node, variables, tensors)


def renamed(node: Stmt, variables: dict[str, Expr], tensors: dict[str, str]) -> Stmt:
    """The statement with other loop variables and temporaries."""

    def statement(each: Stmt) -> Stmt:
        match each:
            case For(var, _, _, _) if isinstance(new := variables.get(var), Var):
                return replace(each, var=new.name)
            case Allocate(tensor, _) if tensor.name in tensors:
                return replace(each, tensor=replace(tensor, name=tensors[tensor.name]))
            case Store() | Prefetch() if each.tensor in tensors:
                return replace(each, tensor=tensors[each.tensor])
        return each

    def expression(each: Expr) -> Expr:
        return simplify(substitute(_other_tensors(each, tensors), variables))

    return map_statements(node, expression, statement)


def _other_tensors(node: Expr, tensors: dict[str, str]) -> Expr:
    def other(part: Expr) -> Expr:
        if isinstance(part, Load) and part.tensor in tensors:
            return replace(part, tensor=tensors[part.tensor])
        return part

    return map_expression(node, other) if tensors else node


def expanded(tensor: Tensor, count: Expr) -> Tensor:
    """A temporary with an axis in front: one for each of ``count`` iterations."""
    # What the caller's extents decide fits no register, and a stack perhaps not.
    scope = tensor.scope if isinstance(count, Const) or tensor.scope not in _SMALL else "auto"
    return replace(tensor, shape=(count, *tensor.shape), scope=scope)


def indexed(node: Stmt, tensor: str, index: Expr) -> Stmt:
    """The statement with an index in front of those of a tensor."""

    def load(each: Expr) -> Expr:
        if isinstance(each, Load) and each.tensor == tensor:
            return replace(each, indices=(index, *each.indices))
        return each

    def statement(each: Stmt) -> Stmt:
        if isinstance(each, Store | Prefetch) and each.tensor == tensor:
            return replace(each, indices=(index, *each.indices))
        return each

    return map_statements(node, lambda e: map_expression(e, load), statement)
