"""LoopIR's nodes: frozen dataclasses, a union for expressions and one for statements.

A `Procedure` has extents (whole numbers, known when it is called), tensors and a body. Iteration
variables and extents are ``int64``; every loop variable of a procedure has a name of its own, so a
directive can say which loop it means. A `Store` with ``reduce`` combines the value with what is
there, which is how reductions are written: the order of the combinations is the order of the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias, assert_never

from kernelwright.env.types import Directive

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "pow")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")
# ``round`` is to the nearest whole number, halves to the even one.
MATH = (
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
)
UNARY = ("neg", "not", "abs", *MATH)
REDUCTIONS = ("add", "mul", "min", "max")
# Where a temporary lives. ``auto`` leaves it to the back end; ``shared`` is one for each block of
# threads, ``local`` and ``register`` are one for each thread; ``scratchpad`` and ``accumulator``
# are an accelerator's.
MEMORY_SCOPES = (
    "auto",
    "heap",
    "stack",
    "register",
    "shared",
    "local",
    "scratchpad",
    "accumulator",
)

# What may be known of a vector of whole numbers: that no element is less than the one before.
FACTS = ("ascending",)


class LoopKind(StrEnum):
    """How the iterations of a loop are executed; only ``serial`` and ``unrolled`` promise an order.

    The dotted kinds bind a loop to a level of a grid of thread blocks (CUDA's words), ``vthread``
    to virtual threads (Chen et al., TVM, OSDI 2018, section 4.4).
    """

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    BLOCK_X = "block.x"
    BLOCK_Y = "block.y"
    BLOCK_Z = "block.z"
    THREAD_X = "thread.x"
    THREAD_Y = "thread.y"
    THREAD_Z = "thread.z"
    VTHREAD = "vthread"


BLOCK_KINDS = (LoopKind.BLOCK_X, LoopKind.BLOCK_Y, LoopKind.BLOCK_Z)
THREAD_KINDS = (LoopKind.THREAD_X, LoopKind.THREAD_Y, LoopKind.THREAD_Z)


@dataclass(frozen=True, slots=True)
class Const:
    """A literal."""

    value: int | float | bool
    dtype: str


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable or an extent, ``int64``."""

    name: str


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a tensor."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation on two operands of one dtype; comparisons and logic give ``bool``.

    ``floordiv`` and ``mod`` round towards minus infinity, as index arithmetic needs.
    """

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Unary:
    """An operation on one operand, in its dtype."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand in another dtype."""

    dtype: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Select:
    """``then`` where the condition holds, else ``other``; both are evaluated only if they are
    chosen.
    """

    condition: Expr
    then: Expr
    other: Expr


Expr: TypeAlias = Const | Var | Load | Binary | Unary | Cast | Select


@dataclass(frozen=True, slots=True)
class Store:
    """Write an element, or with ``reduce`` combine the value with the element that is there.

    ``stream`` asks for a write past the caches; it changes no value. ``reassociable`` says of a
    reduction that its values may be combined in any order and grouping, though floating-point sums
    round differently then.
    """

    tensor: str
    indices: tuple[Expr, ...]
    value: Expr
    reduce: str | None = None
    stream: bool = False
    reassociable: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """``var`` from 0 up to, not including, ``extent``.

    ``apart`` says that no iteration touches what another writes, though no analysis shows it: who
    made the loop vouches.
    """

    var: str
    extent: Expr
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL
    apart: bool = False


@dataclass(frozen=True, slots=True)
class If:
    """``then`` where the condition holds."""

    condition: Expr
    then: Stmt


@dataclass(frozen=True, slots=True)
class While:
    """``body`` again and again as long as the condition holds, which is tested before each time:
    how two sorted lists of coordinates are merged. Its iterations run in order, and nobody knows
    beforehand how many there are.
    """

    condition: Expr
    body: Stmt


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Allocate:
    """A temporary that lives for ``body``; its elements start undefined.

    Inside a loop every iteration has its own.
    """

    tensor: Tensor
    body: Stmt


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a block wait here for one another, and see what the others wrote."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask for the cache line of an element; no meaning but time.

    ``locality`` is from 0 (used once) to 3 (keep in all levels).
    """

    tensor: str
    indices: tuple[Expr, ...]
    write: bool = False
    locality: int = 3


@dataclass(frozen=True, slots=True)
class Call:
    """An instruction or micro-kernel by name in the place of ``body``, which stays its meaning."""

    instruction: str
    body: Stmt


Stmt: TypeAlias = Store | For | If | While | Block | Allocate | Barrier | Prefetch | Call


@dataclass(frozen=True, slots=True)
class Tensor:
    """A row-major array: name, shape in constants and extents, dtype, role (input, output,
    temporary), for a temporary the memory that it lives in, and for an input what is known of its
    elements (`FACTS`), for which the caller vouches.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    role: str = "temporary"
    scope: str = "auto"
    facts: tuple[str, ...] = ()


class Origin(Protocol):
    """A front end's statement, with all that was decided about it so far."""

    @property
    def key(self) -> str:
        """A text that no other origin has: what is remembered of one is not told of another."""
        ...

    def proposals(self) -> tuple[Directive, ...]:
        """The directives of the front end that one may try next, in a fixed order."""
        ...


@dataclass(frozen=True, slots=True)
class Procedure:
    """A kernel: its extents, its inputs and outputs in declared order, and what it does.

    ``origin`` is what a front end has just lowered it from, for the directives of that front end,
    which lower it anew. It is no part of the procedure's meaning: procedures with equal loops are
    equal. A directive on loops leaves none.
    """

    name: str
    extents: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    body: Stmt
    origin: Origin | None = field(default=None, compare=False, repr=False)


def children(node: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    # Asked of every node all the time: plain tests take a fifth of what a match does.
    if isinstance(node, Binary):
        return node.left, node.right
    if isinstance(node, Const | Var):
        return ()
    if isinstance(node, Load):
        return node.indices
    if isinstance(node, Unary | Cast):
        return (node.operand,)
    if isinstance(node, Select):
        return node.condition, node.then, node.other
    assert_never(node)


def rebuild(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The same expression over other operands."""
    match node:
        case Const() | Var():
            return node
        case Load(tensor, _):
            return Load(tensor, operands)
        case Binary(op, _, _):
            return Binary(op, *operands)
        case Unary(op, _):
            return Unary(op, *operands)
        case Cast(dtype, _):
            return Cast(dtype, *operands)
        case Select():
            return Select(*operands)
        case _:
            assert_never(node)


def walk(node: Expr) -> Iterator[Expr]:
    """The expression and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def substitute(node: Expr, values: dict[str, Expr]) -> Expr:
    """The expression with variables replaced."""
    if isinstance(node, Var):
        return values.get(node.name, node)
    if isinstance(node, Const):
        return node
    if isinstance(node, Binary):
        left, right = substitute(node.left, values), substitute(node.right, values)
        unchanged = left is node.left and right is node.right
        return node if unchanged else Binary(node.op, left, right)
    return rebuild(node, tuple([substitute(child, values) for child in children(node)]))


def map_expression(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild an expression bottom-up: ``change`` on every rebuilt part of it."""
    below = children(node)
    new = tuple([map_expression(child, change) for child in below])
    changed = any(a is not b for a, b in zip(new, below, strict=True))
    return change(rebuild(node, new) if changed else node)


def map_statements(
    node: Stmt,
    expression: Callable[[Expr], Expr],
    statement: Callable[[Stmt], Stmt] | None = None,
) -> Stmt:
    """Rebuild a statement bottom-up: ``expression`` on every expression in it, then ``statement``
    on every rebuilt statement.
    """
    rebuilt: Stmt
    match node:
        case Store(tensor, indices, value, reduce, stream, reassociable):
            places = tuple(expression(i) for i in indices)
            rebuilt = Store(tensor, places, expression(value), reduce, stream, reassociable)
        case For(var, extent, body, kind, apart):
            inner = map_statements(body, expression, statement)
            rebuilt = For(var, expression(extent), inner, kind, apart)
        case If(condition, then):
            rebuilt = If(expression(condition), map_statements(then, expression, statement))
        case While(condition, body):
            rebuilt = While(expression(condition), map_statements(body, expression, statement))
        case Block(body):
            rebuilt = Block(tuple(map_statements(s, expression, statement) for s in body))
        case Allocate(tensor, body):
            rebuilt = Allocate(tensor, map_statements(body, expression, statement))
        case Prefetch(tensor, indices, write, locality):
            rebuilt = Prefetch(tensor, tuple(expression(i) for i in indices), write, locality)
        case Call(instruction, body):
            rebuilt = Call(instruction, map_statements(body, expression, statement))
        case Barrier():
            rebuilt = node
        case _:
            assert_never(node)
    return rebuilt if statement is None else statement(rebuilt)


def statements(node: Stmt) -> Iterator[Stmt]:
    """The statement and all below it, in program order."""
    yield node
    match node:
        case For(_, _, body) | While(_, body) | Allocate(_, body) | Call(_, body):
            yield from statements(body)
        case If(_, then):
            yield from statements(then)
        case Block(body):
            for item in body:
                yield from statements(item)
        case Store() | Barrier() | Prefetch():
            pass
        case _:
            assert_never(node)


def loops(procedure: Procedure) -> tuple[For, ...]:
    """Every loop, in program order."""
    return tuple(s for s in statements(procedure.body) if isinstance(s, For))
