"""LoopIR as readable text: one line a statement, two spaces a level, loop kinds after the colon.

The text is for people, models and golden files; a procedure's JSON is what programs exchange.
"""

from __future__ import annotations

from typing import assert_never

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    While,
)

_INFIX = {
    "add": ("+", 4),
    "sub": ("-", 4),
    "mul": ("*", 5),
    "div": ("/", 5),
    "floordiv": ("//", 5),
    "mod": ("%", 5),
    "lt": ("<", 3),
    "le": ("<=", 3),
    "gt": (">", 3),
    "ge": (">=", 3),
    "eq": ("==", 3),
    "ne": ("!=", 3),
    "and": ("and", 2),
    "or": ("or", 1),
}
_REDUCE = {"add": "+=", "mul": "*=", "min": "min=", "max": "max="}
# Operators whose chains read left to right without brackets.
_ASSOCIATIVE_LEFT = frozenset({"add", "sub", "mul", "div", "floordiv", "mod", "and", "or"})


def print_procedure(procedure: Procedure) -> str:
    """The whole procedure."""
    tensors = [f"{t.role} {_tensor(t)}" for t in procedure.tensors]
    head = ", ".join([*tensors, *procedure.extents])
    return "\n".join([f"def {procedure.name}({head}):", *_lines(procedure.body, 1)]) + "\n"


def _tensor(tensor: Tensor) -> str:
    shape = ", ".join(print_expr(extent) for extent in tensor.shape)
    return " ".join([f"{tensor.name}: {tensor.dtype}[{shape}]", *tensor.facts])


def _lines(node: Stmt, level: int) -> list[str]:
    pad = "  " * level
    match node:
        case Store(tensor, indices, value, reduce, stream, reassociable):
            sign = "=" if reduce is None else _REDUCE[reduce]
            asked = (("stream", stream), ("reassociable", reassociable))
            notes = ", ".join(word for word, is_asked in asked if is_asked)
            note = f"  # {notes}" if notes else ""
            return [f"{pad}{_element(tensor, indices)} {sign} {print_expr(value)}{note}"]
        case For(var, extent, body, kind, apart):
            said = [kind.value] if kind is not LoopKind.SERIAL else []
            said += ["apart"] if apart else []
            note = f"  # {', '.join(said)}" if said else ""
            return [f"{pad}for {var} in {print_expr(extent)}:{note}", *_lines(body, level + 1)]
        case If(condition, then):
            return [f"{pad}if {print_expr(condition)}:", *_lines(then, level + 1)]
        case While(condition, body):
            return [f"{pad}while {print_expr(condition)}:", *_lines(body, level + 1)]
        case Block(body):
            return [line for item in body for line in _lines(item, level)] or [f"{pad}pass"]
        case Allocate(tensor, body):
            note = "" if tensor.scope == "auto" else f"  # {tensor.scope}"
            return [f"{pad}allocate {_tensor(tensor)}{note}", *_lines(body, level)]
        case Barrier():
            return [f"{pad}barrier"]
        case Prefetch(tensor, indices, write, locality):
            note = f"  # {'write' if write else 'read'}, locality {locality}"
            return [f"{pad}prefetch {_element(tensor, indices)}{note}"]
        case Call(instruction, body):
            return [f"{pad}call {instruction}:", *_lines(body, level + 1)]
        case _:
            assert_never(node)


def _element(tensor: str, indices: tuple[Expr, ...]) -> str:
    return f"{tensor}[{', '.join(print_expr(index) for index in indices)}]"


def print_expr(node: Expr, outer: int = 0) -> str:
    """An expression; ``outer`` is how tightly what surrounds it binds."""
    match node:
        case Const(value, dtype):
            return str(value) if dtype in ("int64", "bool") else f"{dtype}({value})"
        case Var(name):
            return name
        case Load(tensor, indices):
            return _element(tensor, indices)
        case Binary(op, left, right):
            if op not in _INFIX:
                return f"{op}({print_expr(left)}, {print_expr(right)})"
            sign, level = _INFIX[op]
            text = f"{print_expr(left, level if op in _ASSOCIATIVE_LEFT else level + 1)} {sign} "
            text += print_expr(right, level + 1)
            return f"({text})" if level < outer else text
        case Unary(op, operand):
            return f"{op}({print_expr(operand)})"
        case Cast(dtype, operand):
            return f"{dtype}({print_expr(operand)})"
        case Select(condition, then, other):
            parts = ", ".join(print_expr(part) for part in (condition, then, other))
            return f"select({parts})"
        case _:
            assert_never(node)
