"""LoopIR to C: one function after the calling convention, vectorized loops as GCC vector types.

A vectorized loop is emitted as operations on vectors of its lanes, never left to the compiler's own
vectoriser, which picks the wrong loop of a register tile and loses a factor of ten. What has no
vector form (a choice, a math function, a strided store) is executed lane by lane, in order. A guard
on the lanes (the tail of a split) is tested once for all of them, with the lanes one by one where
it does not hold. Unrolled loops are written out. Parallel loops carry an OpenMP pragma, which a
compiler without ``-fopenmp`` skips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.expression import (
    LOOSE,
    Expressions,
    Lanes,
    depends_on,
    step_of,
)
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    map_statements,
    statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.runtime.call import C_TYPES, Argument, prototype

# Of all temporaries that live at one time; the rest is on the heap.
MAX_STACK_BYTES = 1 << 16
MAX_UNROLLED = 2048


class CodegenError(CompilerError):
    """A procedure that has no C form; it says which node and why."""


def arguments(procedure: Procedure) -> tuple[Argument, ...]:
    """The array arguments of a procedure's function.

    Raises:
        CodegenError: if a shape is neither a number nor an extent.
    """
    out = []
    for tensor in procedure.tensors:
        shape: list[str | int] = []
        for extent in tensor.shape:
            match extent:
                case Const(value, "int64"):
                    shape.append(int(value))
                case Var(name):
                    shape.append(name)
                case _:
                    raise CodegenError(
                        f"{tensor.name}: expected an extent or a number, found {extent}"
                    )
        out.append(Argument(tensor.name, tuple(shape), tensor.dtype, tensor.role == "input"))
    return tuple(out)


def generate(procedure: Procedure) -> str:
    """The C text of a procedure: headers, helpers and types that it uses, and the function.

    Raises:
        CodegenError: as `check_form` does, or if a shape has no C form.
    """
    check_form(procedure)
    emitter = _Emitter(procedure)
    head = prototype(procedure.name, arguments(procedure), procedure.extents)
    emitter.line(f"{head} {{")
    with emitter.indented():
        emitter.statement(procedure.body)
    emitter.line("}")
    includes = ["#include <math.h>", "#include <stdint.h>", "#include <stdlib.h>", ""]
    return (
        "\n".join([*includes, *emitter.expressions.preamble(emitter.lines), *emitter.lines]) + "\n"
    )


def check_form(procedure: Procedure) -> None:
    """See that a procedure has a C form of sensible size, without writing it.

    Raises:
        CodegenError: if a name is C's own, or more than `MAX_UNROLLED` statements would be written.
    """
    check_names(procedure)
    count = written(procedure.body)
    if count > MAX_UNROLLED:
        raise CodegenError(
            f"expected at most {MAX_UNROLLED} statements after unrolling, found {count}"
        )


def written(node: Stmt, copies: int = 1, *, in_lanes: bool = False) -> int:
    """How many statements the C of a statement has, at most: every copy of an unrolled loop counts,
    and what is guarded in a vectorized loop is written with and without the guard.
    """
    match node:
        case Store() | Barrier() | Prefetch():
            return copies
        case For(_, extent, body, kind):
            count = simplify(extent) if kind is LoopKind.UNROLLED else whole(1)
            times = int(count.value) if isinstance(count, Const) else 1
            inside = in_lanes or kind is LoopKind.VECTORIZED
            return written(body, copies * times, in_lanes=inside)
        case If(_, then):
            return written(then, copies * (2 if in_lanes else 1), in_lanes=in_lanes)
        case Block(items):
            return sum(written(item, copies, in_lanes=in_lanes) for item in items)
        case Allocate(_, body) | Call(_, body):
            return written(body, copies, in_lanes=in_lanes)
        case _:
            assert_never(node)


def check_names(procedure: Procedure) -> None:
    """See that C leaves the names of a procedure free.

    Raises:
        CodegenError: if it does not; it has the first such name.
    """
    found = [*procedure.extents, *(t.name for t in procedure.tensors)]
    for node in statements(procedure.body):
        match node:
            case For(var, _, _, _):
                found.append(var)
            case Allocate(tensor, _):
                found.append(tensor.name)
    refused = [name for name in found if not names.is_free(name)]
    if not names.is_free_function(procedure.name):
        refused.insert(0, procedure.name)
    if refused:
        raise CodegenError(f"expected a name that C leaves free, found {refused[0]!r}")


class _Emitter:
    """Writes lines, a statement at a time."""

    def __init__(self, procedure: Procedure) -> None:
        self.lines: list[str] = []
        self.expressions = Expressions(procedure)
        self._level = 0
        self._stack_bytes = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._level + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._level += 1
        yield
        self._level -= 1

    def statement(self, node: Stmt) -> None:
        """Emit a statement outside any vectorized loop."""
        match node:
            case Store(tensor, indices, value, reduce):
                self.line(
                    self._store(
                        self.expressions.element(tensor, indices),
                        tensor,
                        self.expressions.scalar(value, LOOSE),
                        reduce,
                    )
                )
            case For(_, _, _, LoopKind.VECTORIZED):
                self._vectorized(node)
            case For(var, extent, body, LoopKind.UNROLLED):
                for copy in self._copies(var, extent, body):
                    self.statement(copy)
            case For(var, extent, body, kind):
                pragma = "#pragma omp parallel for schedule(static)"
                self._loop(
                    var,
                    extent,
                    lambda: self.statement(body),
                    pragma if kind is LoopKind.PARALLEL else None,
                )
            case If(condition, then):
                self.line(f"if ({self.expressions.scalar(condition, LOOSE)}) {{")
                with self.indented():
                    self.statement(then)
                self.line("}")
            case Block(items):
                for item in items:
                    self.statement(item)
            case Allocate(tensor, body):
                with self._allocated(tensor):
                    self.statement(body)
            case Prefetch():
                self._prefetch(node)
            case Call(instruction, body):
                self.line(f"// {instruction}")
                self.statement(body)
            case Barrier():
                raise CodegenError("expected no barrier: C has no threads of a block, found one")
            case _:
                assert_never(node)

    def _loop(
        self, var: str, extent: Expr, body: Callable[[], None], pragma: str | None = None
    ) -> None:
        limit = self.expressions.scalar(extent, 11)
        loaded = any(isinstance(node, Load) for node in walk(extent))
        if loaded:
            # The body may write what the extent was read from.
            self.line("{")
            self._level += 1
            self.line(
                f"const int64_t {names.extent(var)} = {self.expressions.scalar(extent, LOOSE)};"
            )
            limit = names.extent(var)
        if pragma is not None:
            self.line(pragma)
        self.line(f"for (int64_t {var} = 0; {var} < {limit}; {var}++) {{")
        with self.indented():
            body()
        self.line("}")
        if loaded:
            self._level -= 1
            self.line("}")

    def _copies(self, var: str, extent: Expr, body: Stmt) -> Iterator[Stmt]:
        count = simplify(extent)
        if not isinstance(count, Const):
            raise CodegenError(f"unrolled loop {var}: expected a constant extent, found {extent}")
        for i in range(int(count.value)):
            yield _replace(body, var, whole(i))

    @contextmanager
    def _allocated(self, tensor: Tensor) -> Iterator[None]:
        """A temporary: on the stack where it is small and of known size, else on the heap."""
        size = simplify(_product(tensor.shape))
        c_type = C_TYPES[tensor.dtype]
        self.expressions.tensors[tensor.name] = tensor
        self.line("{")
        with self.indented():
            count = int(size.value) if isinstance(size, Const) else MAX_STACK_BYTES
            taken = count * ITEM_BYTES[tensor.dtype]
            small = self._stack_bytes + taken <= MAX_STACK_BYTES
            self._stack_bytes += taken if small else 0
            if small:
                element_count = self.expressions.scalar(size)
                aligned = "__attribute__((aligned(64)))"
                self.line(f"{c_type} {tensor.name}[{element_count}] {aligned};")
            else:
                bytes_text = (
                    f"(({self.expressions.scalar(size)}) * sizeof({c_type}) + 63) / 64 * 64"
                )
                self.line(f"{c_type} *restrict {tensor.name} = aligned_alloc(64, {bytes_text});")
                self.line(f"if (!{tensor.name}) abort();")
            yield
            self._stack_bytes -= taken if small else 0
            if not small:
                self.line(f"free({tensor.name});")
        self.line("}")
        del self.expressions.tensors[tensor.name]

    def _prefetch(self, node: Prefetch) -> None:
        element = self.expressions.element(node.tensor, node.indices)
        self.line(f"__builtin_prefetch(&{element}, {int(node.write)}, {node.locality});")

    def _store(self, target: str, tensor: str, value: str, reduce: str | None) -> str:
        match reduce:
            case None:
                return f"{target} = {value};"
            case "add":
                return f"{target} += {value};"
            case "mul":
                return f"{target} *= {value};"
            case _:
                helper = self.expressions.extremum(reduce, self.expressions.tensors[tensor].dtype)
                return f"{target} = {helper}({target}, {value});"

    def _vectorized(self, loop: For) -> None:
        count = simplify(loop.extent)
        if not isinstance(count, Const) or int(count.value) < 1:
            raise CodegenError(f"vectorized loop {loop.var}: expected a constant number of lanes")
        lanes = Lanes(loop.var, int(count.value))
        self._vector_statement(loop.body, lanes)

    def _vector_statement(self, node: Stmt, lanes: Lanes) -> None:
        match node:
            case Store(tensor, indices, value, reduce):
                text = self._vector_store(tensor, indices, value, reduce, lanes)
                if text is None:
                    self._one_by_one(node, lanes)
                else:
                    self.line(text)
            case For(var, extent, body, LoopKind.UNROLLED) if not depends_on(extent, lanes.var):
                for copy in self._copies(var, extent, body):
                    self._vector_statement(copy, lanes)
            case For(var, extent, body, LoopKind.SERIAL) if not depends_on(extent, lanes.var):
                self._loop(var, extent, lambda: self._vector_statement(body, lanes))
            case If(condition, then) if not depends_on(condition, lanes.var):
                self.line(f"if ({self.expressions.scalar(condition, LOOSE)}) {{")
                with self.indented():
                    self._vector_statement(then, lanes)
                self.line("}")
            case If(Binary("lt" | "le", left, right) as condition, then) if (
                step_of(left, lanes.var) or -1
            ) > 0 and not depends_on(right, lanes.var):
                last = simplify(substitute(condition, {lanes.var: whole(lanes.count - 1)}))
                self.line(f"if ({self.expressions.scalar(last, LOOSE)}) {{")
                with self.indented():
                    self._vector_statement(then, lanes)
                self.line("} else {")
                with self.indented():
                    self._one_by_one(node, lanes)
                self.line("}")
            case Block(items):
                for item in items:
                    self._vector_statement(item, lanes)
            case Prefetch():
                # The lanes lie in one cache line or the next.
                self.statement(_replace(node, lanes.var, whole(0)))
            case Call(instruction, body):
                self.line(f"// {instruction}")
                self._vector_statement(body, lanes)
            case _:
                self._one_by_one(node, lanes)

    def _one_by_one(self, node: Stmt, lanes: Lanes) -> None:
        self._loop(lanes.var, whole(lanes.count), lambda: self.statement(node))

    def _vector_store(
        self, tensor: str, indices: tuple[Expr, ...], value: Expr, reduce: str | None, lanes: Lanes
    ) -> str | None:
        """The store of all lanes as one statement, None if it has no such form."""
        dtype = self.expressions.tensors[tensor].dtype
        if not self.expressions.has_vectors(dtype, lanes) or reduce not in (None, "add", "mul"):
            return None
        if step_of(self.expressions.flat(tensor, indices), lanes.var) != 1:
            return None
        text = self.expressions.vector(value, lanes, dtype, LOOSE)
        if text is None:
            return None
        target = self.expressions.vector_element(tensor, indices, lanes, const="")
        return self._store(target, tensor, text, reduce)


def _product(shape: tuple[Expr, ...]) -> Expr:
    out: Expr = whole(1)
    for extent in shape:
        out = Binary("mul", out, extent)
    return out


def _replace(node: Stmt, var: str, value: Expr) -> Stmt:
    """A statement with a loop variable replaced, simplified."""
    return map_statements(node, lambda e: simplify(substitute(e, {var: value})))
