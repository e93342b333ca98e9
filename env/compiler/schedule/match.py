"""Whether a nest means what an instruction does: the two are unified, statement by statement.

Loop variables may have other names, the instruction's extents may be any expression that does not
change inside, and a window may be any part of a tensor whose place is an offset and one constant
step for every loop of the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.env.compiler.ir.linear import step_of
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    children,
    substitute,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import has_loads, mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.schedule.instruction import Instruction


class MatchError(Exception):
    """The first place where a nest and an instruction differ."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in a program: the tensor, the offset of its first element and a stride for every
    axis, in elements.
    """

    tensor: str
    offset: Expr
    strides: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """What an instruction's windows and extents are in a program, by name."""

    windows: Mapping[str, Window]
    extents: Mapping[str, Expr]


def match(instruction: Instruction, nest: Stmt, tensors: Mapping[str, Tensor]) -> Match:
    """Where an instruction's windows lie in a nest that means the same; ``tensors`` are those in
    scope.

    Raises:
        MatchError: at the first difference.
    """
    search = _Search(instruction, tensors)
    search.statement(instruction.semantics.body, nest)
    search.finish()
    return Match(search.windows, search.extents)


@dataclass(slots=True)
class _Search:
    """What is known so far: the program's loops, windows and extents by the instruction's names."""

    instruction: Instruction
    tensors: Mapping[str, Tensor]
    loops: dict[str, str] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    extents: dict[str, Expr] = field(default_factory=dict)

    def statement(self, meant: Stmt, found: Stmt) -> None:
        match meant, found:
            case For(), For():
                self._loop(meant, found)
            case Store(), Store():
                if meant.reduce != found.reduce:
                    wanted, is_there = meant.reduce or "=", found.reduce or "="
                    what = f"expected {wanted} into {found.tensor}, found {is_there}"
                    raise MatchError(what)
                self._window(meant.tensor, meant.indices, found.tensor, found.indices)
                self.expression(meant.value, found.value)
            case If(), If():
                self.expression(meant.condition, found.condition)
                self.statement(meant.then, found.then)
            case Block(wanted), Block(items):
                if len(wanted) != len(items):
                    raise MatchError(f"expected {len(wanted)} statements, found {len(items)}")
                for one, other in zip(wanted, items, strict=True):
                    self.statement(one, other)
            case _:
                raise MatchError(f"expected {_kind(meant)}, found {_kind(found)}")

    def _loop(self, meant: For, found: For) -> None:
        if found.kind is not LoopKind.SERIAL:
            raise MatchError(f"expected a serial loop, found {found.var} {found.kind}")
        self._whole(meant.extent, found.extent, f"an extent of loop {found.var}")
        self.loops[meant.var] = found.var
        self.statement(meant.body, found.body)

    def _whole(self, meant: Expr, found: Expr, what: str) -> None:
        """An extent: the instruction's number, or what its own extent is here."""
        found = simplify(found)
        if isinstance(meant, Var) and meant.name not in self.loops:
            self.extents.setdefault(meant.name, found)
            meant = self.extents[meant.name]
            inner = next((v for v in self.loops.values() if mentions(found, v)), None)
            if inner is not None or has_loads(found):
                raise MatchError(f"expected {what} that stays, found {print_expr(found)}")
        elif isinstance(meant, Var):
            meant = Var(self.loops[meant.name])
        if meant != found:
            raise MatchError(f"expected {what} of {print_expr(meant)}, found {print_expr(found)}")

    def expression(self, meant: Expr, found: Expr) -> None:
        match meant, found:
            case Binary("add" | "mul" as a, _, _), Binary(b, left, right) if a == b:
                # Either way round: a + b is b + a, in floating point, too.
                windows, extents = dict(self.windows), dict(self.extents)
                try:
                    self._children(meant, found)
                except MatchError:
                    self.windows, self.extents = windows, extents
                    try:
                        self._children(meant, Binary(b, right, left))
                        return
                    except MatchError:
                        self.windows, self.extents = windows, extents
                    raise
                return
            case Load(), Load():
                self._window(meant.tensor, meant.indices, found.tensor, found.indices)
                return
            case Var(), _:
                self._whole(meant, found, "a whole number")
                return
            case Const(), Const() if repr(meant) == repr(found):
                return
            case (Binary(a), Binary(b)) | (Unary(a), Unary(b)) | (Cast(a), Cast(b)) if a == b:
                pass
            case Select(), Select():
                pass
            case _:
                raise MatchError(f"expected {_word(meant)}, found {_word(found)}")
        self._children(meant, found)

    def _children(self, meant: Expr, found: Expr) -> None:
        for one, other in zip(children(meant), children(found), strict=True):
            self.expression(one, other)

    def _window(
        self, name: str, meant: tuple[Expr, ...], tensor: str, indices: tuple[Expr, ...]
    ) -> None:
        """An access to a window, which must be the same window at every access."""
        declared = next(t for t in self.instruction.windows if t.name == name)
        actual = self.tensors[tensor]
        if declared.dtype != actual.dtype:
            raise MatchError(
                f"expected {declared.dtype} for {name}, found {tensor}: {actual.dtype}"
            )
        scopes = dict(self.instruction.scopes).get(name)
        if scopes is not None and actual.scope not in scopes:
            wanted = " or ".join(scopes)
            raise MatchError(f"expected {name} in {wanted}, found {tensor} in {actual.scope}")
        if self.instruction.c is not None and actual.scope == "register":
            # C has no address for it.
            raise MatchError(f"expected {name} in memory, found {tensor} in registers")
        axes = [self.loops[index.name] for index in meant if isinstance(index, Var)]
        window = _located(actual, indices, axes, tuple(self.loops.values()))
        known = self.windows.setdefault(name, window)
        if known != window:
            raise MatchError(f"expected one place for {name}, found another in {tensor}")
        if name in self.instruction.contiguous and axes and window.strides[-1] != whole(1):
            step = print_expr(window.strides[-1])
            raise MatchError(
                f"expected the last axis of {name} side by side, found a step of {step}"
            )
        if declared.role == "output":
            self._injective(name, tensor, indices, axes)

    def _injective(
        self, name: str, tensor: str, indices: tuple[Expr, ...], axes: list[str]
    ) -> None:
        """Every element that is written has a place of its own."""
        for axis in axes:
            using = [index for index in indices if step_of(index, axis)]
            alone = len(using) == 1 and sum(bool(step_of(using[0], other)) for other in axes) == 1
            if not alone:
                raise MatchError(f"expected an element of its own for each {name}, found {tensor}")

    def finish(self) -> None:
        """No window that is written is part of a tensor that another window is part of."""
        for tensor in self.instruction.windows:
            if tensor.role != "output" or tensor.name not in self.windows:
                continue
            for name, window in self.windows.items():
                if name != tensor.name and window.tensor == self.windows[tensor.name].tensor:
                    raise MatchError(
                        f"expected {name} and {tensor.name} in different tensors, "
                        f"found both in {window.tensor}"
                    )


def _located(
    tensor: Tensor, indices: tuple[Expr, ...], axes: list[str], loops: tuple[str, ...]
) -> Window:
    """Where a window begins, and its strides."""
    rows = _row_strides(tensor)
    strides: list[Expr] = [whole(0)] * len(axes)
    for index, row in zip(indices, rows, strict=True):
        for loop in loops:
            step = step_of(index, loop)
            if step is None or (step and loop not in axes):
                where = f"{tensor.name}[…, {print_expr(index)}, …]"
                raise MatchError(f"expected a constant step along the window's axes, found {where}")
            if step:
                grown = Binary("add", strides[axes.index(loop)], Binary("mul", row, whole(step)))
                strides[axes.index(loop)] = simplify(grown)
    first: dict[str, Expr] = dict.fromkeys(loops, whole(0))
    offset: Expr = whole(0)
    for index, row in zip(indices, rows, strict=True):
        offset = Binary("add", offset, Binary("mul", substitute(index, first), row))
    return Window(tensor.name, simplify(offset), tuple(strides))


def _row_strides(tensor: Tensor) -> list[Expr]:
    strides: list[Expr] = []
    size: Expr = whole(1)
    for extent in reversed(tensor.shape):
        strides.insert(0, size)
        size = simplify(Binary("mul", size, extent))
    return strides


def _kind(node: Stmt) -> str:
    match node:
        case For(var):
            return f"a loop{f' ({var})' if var else ''}"
        case Store(tensor):
            return f"a store into {tensor}"
        case If(condition):
            return f"a guard ({print_expr(condition)})"
        case Block(items):
            return f"{len(items)} statements"
    return type(node).__name__.lower()


def _word(node: Expr) -> str:
    match node:
        case Binary(op) | Unary(op):
            return op
        case Cast(dtype):
            return f"a cast to {dtype}"
        case Load(tensor):
            return f"an element of {tensor}"
        case Const() | Var():
            return print_expr(node)
        case Select():
            return "a choice"
