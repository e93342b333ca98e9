"""What is in an expression or a statement: variables, loads, stores, tensors."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Const,
    Expr,
    Load,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    map_statements,
    statements,
    walk,
)


def variables_of(node: Expr) -> set[str]:
    """The variables in an expression."""
    return {part.name for part in walk(node) if isinstance(part, Var)}


def mentions(node: Expr, *names: str) -> bool:
    """Whether one of these variables is in an expression."""
    return any(isinstance(part, Var) and part.name in names for part in walk(node))


def has_loads(node: Expr) -> bool:
    """Whether an expression reads memory."""
    return any(isinstance(part, Load) for part in walk(node))


def is_total(node: Expr) -> bool:
    """Whether an expression can be computed anywhere: it reads no memory, which may change, and
    divides by nothing that may be 0.
    """
    return not any(isinstance(part, Load) or _may_divide_by_0(part) for part in walk(node))


def _may_divide_by_0(node: Expr) -> bool:
    match node:
        case Binary("floordiv" | "mod", _, Const(value, _)):
            return not value
        case Binary("floordiv" | "mod", _, _):
            return True
    return False


def expressions(node: Stmt) -> Iterator[Expr]:
    """Every expression that stands directly in a statement or below it."""
    found: list[Expr] = []

    def note(each: Expr) -> Expr:
        found.append(each)
        return each

    map_statements(node, note)
    yield from found


def loads(node: Stmt) -> Iterator[Load]:
    """Everything a statement loads."""
    for root in expressions(node):
        for part in walk(root):
            if isinstance(part, Load):
                yield part


def stores(node: Stmt) -> tuple[Store, ...]:
    """Every store, in program order."""
    return tuple(s for s in statements(node) if isinstance(s, Store))


def tensors_of(node: Stmt) -> set[str]:
    """The tensors that a statement reads or writes, its own temporaries among them."""
    found = {s.tensor for s in statements(node) if isinstance(s, Store | Prefetch)}
    return found | {part.tensor for part in loads(node)}


def loads_from(node: Stmt, tensor: str) -> bool:
    """Whether an expression of a statement reads a tensor."""
    return any(load.tensor == tensor for load in loads(node))


def writes(node: Stmt, tensor: str) -> bool:
    """Whether a statement writes a tensor."""
    return any(store.tensor == tensor for store in stores(node))


def temporaries(node: Stmt) -> tuple[Tensor, ...]:
    """What is allocated in a statement, in program order."""
    return tuple(s.tensor for s in statements(node) if isinstance(s, Allocate))


def tensors_by_name(procedure: Procedure) -> dict[str, Tensor]:
    """Every tensor of a procedure, its temporaries last."""
    return {t.name: t for t in (*procedure.tensors, *temporaries(procedure.body))}
