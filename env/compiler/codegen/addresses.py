"""LoopIR to C that makes the addresses of a procedure's accesses instead of computing with them.

The accesses are those of the interpreter, in its order: what a store reads from left to right,
indices before the element they lead to, then what a reduction combines with, then what is written;
of a `Select` the chosen side alone, of ``and`` and ``or`` what decides. Loops of all kinds run one
iteration after the other. What is in registers, writes past the caches and prefetches are none.
Where an index, an extent or a condition is read from memory, the values
that it needs are there or computed beside the addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.expression import LOOSE
from kernelwright.env.compiler.codegen.form import check_names
from kernelwright.env.compiler.codegen.writer import Writer
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    While,
    children,
    statements,
    walk,
)
from kernelwright.env.compiler.ir.queries import temporaries
from kernelwright.env.compiler.runtime.call import C_TYPES


@dataclass(frozen=True, slots=True)
class AddressStream:
    """The C text of a function ``kw_stream``, what its numbers mean, and what it reads.

    ``tensors`` are in the order in which the text numbers them and expects their bases, with the
    sizes of their elements in ``element_bytes``; the arrays of ``inputs`` it expects with their
    values, in this order.
    """

    text: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[str, ...]
    element_bytes: tuple[int, ...]


def address_stream(
    procedure: Procedure, element_bytes: Mapping[str, int] | None = None
) -> AddressStream:
    """The function that calls ``kw_touch(caches, address, tensor, write)`` for every access.

    Args:
        procedure: whose accesses.
        element_bytes: sizes of elements by tensor, where they are not those of the dtypes.

    Raises:
        CodegenError: if a name is C's own, or threads wait for one another.
        ValueError: if a size is of no tensor, or no power of two.
    """
    check_names(procedure)
    tensors = (*procedure.tensors, *temporaries(procedure.body))
    sizes = {tensor.name: ITEM_BYTES[tensor.dtype] for tensor in tensors}
    for name, size in (element_bytes or {}).items():
        if name not in sizes:
            known = ", ".join(sizes)
            raise ValueError(f"element_bytes: expected one of {known}, found {name!r}")
        is_whole = isinstance(size, int) and not isinstance(size, bool)
        if not is_whole or size < 1 or size & (size - 1):
            raise ValueError(f"element_bytes of {name}: expected 2^n, found {size}")
        sizes[name] = size
    valued = _valued(procedure)
    emitter = _Addresses(procedure, tensors, sizes, valued)
    emitter.function()
    inputs = tuple(t.name for t in procedure.tensors if t.role == "input" and t.name in valued)
    head = ["", "#include <math.h>", ""]
    text = "\n".join([*head, *emitter.expressions.preamble(emitter.lines), *emitter.lines])
    return AddressStream(f"{text}\n", tensors, inputs, tuple(sizes.values()))


def _loaded(*expressions: Expr) -> set[str]:
    """The tensors that expressions read."""
    return {n.tensor for e in expressions for n in walk(e) if isinstance(n, Load)}


def _valued(procedure: Procedure) -> frozenset[str]:
    """The tensors whose values decide what is accessed, or go into those that do."""
    found: set[str] = set()
    stores = []
    for node in statements(procedure.body):
        match node:
            case For(_, extent, _, _):
                found |= _loaded(extent)
            case If(condition, _) | While(condition, _):
                found |= _loaded(condition)
            case Store():
                stores.append(node)
                for expression in (node.value, *node.indices):
                    found |= _deciding(expression)
                found |= _loaded(*node.indices)
    while True:
        more = {t for s in stores if s.tensor in found for t in _loaded(s.value)}
        if more <= found:
            return frozenset(found)
        found |= more


def _deciding(node: Expr) -> set[str]:
    """The tensors whose values decide which elements an expression reads."""
    found: set[str] = set()
    for part in walk(node):
        match part:
            case Load(_, indices):
                found |= _loaded(*indices)
            case Select(condition, then, other) if _loaded(then, other):
                found |= _loaded(condition)
            case Binary("and" | "or", left, right) if _loaded(right):
                found |= _loaded(left)
    return found


class _Addresses(Writer):
    """Writes the accesses of a procedure, a statement at a time."""

    def __init__(
        self,
        procedure: Procedure,
        tensors: tuple[Tensor, ...],
        sizes: Mapping[str, int],
        valued: frozenset[str],
    ) -> None:
        super().__init__(procedure)
        self.expressions.tensors |= {t.name: t for t in tensors}
        self._procedure, self._tensors, self._valued = procedure, tensors, valued
        self._sizes = sizes
        self._numbers = {tensor.name: number for number, tensor in enumerate(tensors)}

    def function(self) -> None:
        arguments = "void *kw_caches, const uint64_t *kw_bases, void *const *kw_data"
        self.line(f"void kw_stream({arguments}, const int64_t *kw_extents)")
        with self.braces():
            self.line("(void)kw_data, (void)kw_extents;")
            for place, extent in enumerate(self._procedure.extents):
                self.line(f"const int64_t {extent} = kw_extents[{place}];")
            for number, tensor in enumerate(self._tensors):
                self.line(f"const uint64_t {names.base(tensor.name)} = kw_bases[{number}];")
            given = 0
            for tensor in self._procedure.tensors:
                if tensor.role == "input" and tensor.name in self._valued:
                    self.line(f"const {C_TYPES[tensor.dtype]} *{tensor.name} = kw_data[{given}];")
                    given += 1
            outputs = [t for t in self._procedure.tensors if t.role == "output"]
            self._with_values(outputs, self._procedure.body)

    def _with_values(self, tensors: list[Tensor], body: Stmt) -> None:
        """A statement, with room around it for the values of those tensors that need them."""
        if not tensors:
            self.statement(body)
            return
        tensor, *others = tensors
        if tensor.name not in self._valued:
            self._with_values(others, body)
            return
        c_type, name = C_TYPES[tensor.dtype], tensor.name
        count = " * ".join([self.expressions.scalar(extent) for extent in tensor.shape] or ["1"])
        with self.braces():
            self.line(f"{c_type} *{name} = calloc({count} + 1, sizeof *{name});")
            self.line(f"if (!{name}) abort();")
            self._with_values(others, body)
            self.line(f"free({name});")

    def statement(self, node: Stmt) -> None:
        """The accesses of a statement."""
        match node:
            case Store(tensor, indices, value, reduce, stream):
                for expression in (*indices, value):
                    self._reads(expression)
                if reduce is not None:
                    self._touch(tensor, indices, write=False)
                if not stream:
                    self._touch(tensor, indices, write=True)
                if tensor in self._valued:
                    self._compute(node)
            case For(var, extent, body, _):
                self._reads(extent)
                limit = names.extent(var)
                with self.braces():
                    # The body may write what the extent was read from.
                    text = self.expressions.scalar(extent, LOOSE)
                    self.line(f"const int64_t {limit} = {text};")
                    with self.braces(f"for (int64_t {var} = 0; {var} < {limit}; {var}++)"):
                        self.statement(body)
            case If(condition, then):
                self._reads(condition)
                with self.braces(f"if ({self.expressions.scalar(condition, LOOSE)})"):
                    self.statement(then)
            case While(condition, body):
                # The test that fails reads, too.
                with self.braces("for (;;)"):
                    self._reads(condition)
                    text = self.expressions.scalar(condition)
                    self.line(f"if (!{text}) break;")
                    self.statement(body)
            case Block(items):
                for item in items:
                    self.statement(item)
            case Allocate(tensor, body):
                self._with_values([tensor], body)
            case Call(_, body):
                self.statement(body)
            case Prefetch():
                pass
            case Barrier():
                raise CodegenError("expected no barrier: threads run one by one here, found one")
            case _:
                assert_never(node)

    def _reads(self, node: Expr) -> None:
        """What evaluating an expression reads, in order."""
        match node:
            case Load(tensor, indices):
                for index in indices:
                    self._reads(index)
                self._touch(tensor, indices, write=False)
            case Select(condition, then, other) if _loaded(then, other):
                self._reads(condition)
                with self.braces(f"if ({self.expressions.scalar(condition, LOOSE)})"):
                    self._reads(then)
                with self.braces("else"):
                    self._reads(other)
            case Binary("and" | "or" as op, left, right) if _loaded(right):
                self._reads(left)
                decided = "" if op == "and" else "!"
                with self.braces(f"if ({decided}{self.expressions.scalar(left)})"):
                    self._reads(right)
            case _:
                for child in children(node):
                    self._reads(child)

    def _touch(self, tensor: str, indices: tuple[Expr, ...], *, write: bool) -> None:
        if self.expressions.tensors[tensor].scope == "register":
            return
        offset = self.expressions.scalar(self.expressions.flat(tensor, indices), LOOSE)
        place = f"{names.base(tensor)} + {self._sizes[tensor]} * (uint64_t)({offset})"
        self.line(f"kw_touch(kw_caches, {place}, {self._numbers[tensor]}, {int(write)});")

    def _compute(self, node: Store) -> None:
        target = self.expressions.element(node.tensor, node.indices)
        value = self.expressions.scalar(node.value, LOOSE)
        self.line(self.store(target, node.tensor, value, node.reduce))
