"""LoopIR to C: one function after the calling convention, vectorized loops as GCC vector types.

A vectorized loop is emitted as operations on vectors of its lanes, never left to the compiler's own
vectoriser, which picks the wrong loop of a register tile and loses a factor of ten. What has no
vector form (a choice, a math function, a strided store) is executed lane by lane, in order. A guard
on the lanes (the tail of a split) is tested once for all of them, with the lanes one by one where
it does not hold. Unrolled loops are written out. Parallel loops carry an OpenMP pragma, which a
compiler without ``-fopenmp`` skips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.call import call_text, described
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.expression import (
    LOOSE,
    Expressions,
    Lanes,
    depends_on,
    step_of,
)
from kernelwright.env.compiler.codegen.hoist import divisions, named
from kernelwright.env.compiler.codegen.memory import (
    element_count,
    heap_inside,
    places,
    touches,
)
from kernelwright.env.compiler.codegen.stream import can_stream
from kernelwright.env.compiler.codegen.work_items import as_loops
from kernelwright.env.compiler.ir.evaluate import whole_value
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
from kernelwright.env.compiler.ir.simplify import product, simplify, whole
from kernelwright.env.compiler.runtime.call import C_TYPES, Argument, Size, prototype

__all__ = ["CodegenError", "arguments", "check_form", "generate", "written"]

MAX_UNROLLED = 2048


def arguments(procedure: Procedure) -> tuple[Argument, ...]:
    """The array arguments of a procedure's function."""
    out = []
    for tensor in procedure.tensors:
        shape: list[Size] = []
        for extent in tensor.shape:
            match extent:
                case Const(value, "int64"):
                    shape.append(int(value))
                case Var(name):
                    shape.append(name)
                case _:
                    shape.append(partial(whole_value, extent))
        out.append(Argument(tensor.name, tuple(shape), tensor.dtype, tensor.role == "input"))
    return tuple(out)


def generate(procedure: Procedure) -> str:
    """The C text of a procedure: headers, helpers and types that it uses, and the function.

    Raises:
        CodegenError: as `check_form` does, or if a shape has no C form.
    """
    check_form(procedure)
    procedure = as_loops(procedure)
    emitter = _Emitter(procedure)
    head = prototype(procedure.name, arguments(procedure), procedure.extents)
    emitter.line(f"{head} {{")
    with emitter.indented():
        emitter.statement(procedure.body)
        if emitter.expressions.streams:
            emitter.line(f"{names.fence()}();")
    emitter.line("}")
    includes = ["#include <math.h>", "#include <stdint.h>", "#include <stdlib.h>", ""]
    return (
        "\n".join([*includes, *emitter.expressions.preamble(emitter.lines), *emitter.lines]) + "\n"
    )


def check_form(procedure: Procedure) -> None:
    """See that a procedure has a C form of sensible size, without writing it.

    Raises:
        CodegenError: if a name is C's own, more than `MAX_UNROLLED` statements would be written, or
            a temporary cannot live in the memory that it is asked to, or as `as_loops` does.
    """
    check_names(procedure)
    loops_alone = as_loops(procedure)
    places(loops_alone)
    count = written(loops_alone.body)
    if count > MAX_UNROLLED:
        raise CodegenError(
            f"expected at most {MAX_UNROLLED} statements after unrolling, found {count}"
        )


def written(
    node: Stmt,
    copies: int = 1,
    *,
    lanes: For | None = None,
    registers: frozenset[str] = frozenset(),
) -> int:
    """How many statements the C of a statement has, at most: every copy of an unrolled loop counts,
    and what is guarded lane by lane in a vectorized loop (``lanes``) is written for all lanes and
    once more, for each lane if it accesses ``registers``.
    """
    match node:
        case Store() | Barrier() | Prefetch():
            return copies
        case For(_, _, body, LoopKind.VECTORIZED):
            return written(body, copies, lanes=lanes or node, registers=registers)
        case For(_, extent, body, LoopKind.UNROLLED):
            times = _number(extent) or 1
            return written(body, copies * times, lanes=lanes, registers=registers)
        case For(_, _, body, _) | Call(_, body):
            return written(body, copies, lanes=lanes, registers=registers)
        case If(condition, then):
            count = written(then, copies, lanes=lanes, registers=registers)
            if lanes is not None and depends_on(condition, lanes.var):
                times = (_number(lanes.extent) or 1) if touches(then, registers) else 1
                count += written(then, copies * times, registers=registers)
            return count
        case Block(items):
            return sum(written(item, copies, lanes=lanes, registers=registers) for item in items)
        case Allocate(tensor, body):
            known = registers | {tensor.name} if tensor.scope == "register" else registers
            return written(body, copies, lanes=lanes, registers=known)
        case _:
            assert_never(node)


def _number(extent: Expr) -> int | None:
    count = simplify(extent)
    return int(count.value) if isinstance(count, Const) else None


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
        self._places = places(procedure)
        self._on_heap: set[str] = set()
        for name, place in self._places.items():
            if place.memory == "register":
                self.expressions.registers[name] = place.lanes
        self._hoisted_count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._level + text)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._level += 1
        yield
        self._level -= 1

    def statement(self, node: Stmt) -> None:
        """Emit a statement outside any vectorized loop."""
        node = self._hoisted(node)
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
            case For():
                with self._outside(node):
                    self._for(node)
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
            case Call():
                self._call(node)
            case Barrier():
                raise AssertionError("barriers are gone: as_loops")
            case _:
                assert_never(node)

    def _for(self, node: For) -> None:
        match node:
            case For(_, _, _, LoopKind.VECTORIZED):
                self._vectorized(node)
            case For(var, extent, body, LoopKind.UNROLLED):
                for copy in self._copies(var, extent, body):
                    self.statement(copy)
            case For(var, extent, body, LoopKind.PARALLEL):
                pragma = "#pragma omp parallel for schedule(static)"
                self._loop(var, extent, lambda: self._thread(body), pragma)
            case For(var, extent, body, _):
                self._loop(var, extent, lambda: self.statement(body))

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

    def _thread(self, body: Stmt) -> None:
        """An iteration of a parallel loop, with memory of its own."""
        before, self.expressions.streams = self.expressions.streams, False
        with self._outside(body):
            self.statement(body)
        if self.expressions.streams:
            # What a thread stores past the caches only its own fence orders.
            self.line(f"{names.fence()}();")
        self.expressions.streams = before

    def _copies(self, var: str, extent: Expr, body: Stmt) -> Iterator[Stmt]:
        count = simplify(extent)
        if not isinstance(count, Const):
            raise CodegenError(f"unrolled loop {var}: expected a constant extent, found {extent}")
        for i in range(int(count.value)):
            yield _replace(body, var, whole(i))

    @contextmanager
    def _allocated(self, tensor: Tensor) -> Iterator[None]:
        """A temporary, in the memory where it has its place."""
        self.expressions.tensors[tensor.name] = tensor
        place = self._places[tensor.name]
        if tensor.name in self._on_heap:
            yield
        elif place.memory == "heap":
            with self._heap([tensor]):
                yield
        else:
            c_type, count = C_TYPES[tensor.dtype], element_count(tensor)
            assert count is not None
            self.line("{")
            with self.indented():
                if place.memory == "stack":
                    aligned = "__attribute__((aligned(64)))"
                    self.line(f"{c_type} {tensor.name}[{count}] {aligned};")
                else:
                    self.line(self.expressions.register_variables(tensor, count))
                yield
            self.line("}")
        del self.expressions.tensors[tensor.name]

    @contextmanager
    def _heap(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Allocations that last for a statement."""
        self._on_heap |= {tensor.name for tensor in tensors}
        self.line("{")
        with self.indented():
            for tensor in tensors:
                c_type, size = C_TYPES[tensor.dtype], simplify(product(tensor.shape))
                rounded = f"(({self.expressions.scalar(size)}) * sizeof({c_type}) + 63) / 64 * 64"
                self.line(f"{c_type} *restrict {tensor.name} = aligned_alloc(64, {rounded});")
                self.line(f"if (!{tensor.name}) abort();")
            yield
            for tensor in reversed(tensors):
                self.line(f"free({tensor.name});")
        self.line("}")
        self._on_heap -= {tensor.name for tensor in tensors}

    @contextmanager
    def _outside(self, node: Stmt) -> Iterator[None]:
        """What a loop allocates on the heap, allocated once and outside: no iteration finds what
        another left there.
        """
        inside = [t for t in heap_inside(node, self._places) if t.name not in self._on_heap]
        if not inside:
            yield
            return
        with self._heap(inside):
            yield

    def _prefetch(self, node: Prefetch) -> None:
        if node.tensor in self.expressions.registers:
            return  # nothing of it is in memory
        element = self.expressions.element(node.tensor, node.indices)
        self.line(f"__builtin_prefetch(&{element}, {int(node.write)}, {node.locality});")

    def _call(self, node: Call) -> None:
        """An instruction: a call of its C, or its meaning where it has none."""
        call = call_text(node, self.expressions)
        if call is not None:
            self.line(call)
            return
        self.line(described(node))
        self.statement(node.body)

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

    def _hoisted(self, node: Stmt) -> Stmt:
        """A loop after what no iteration changes of the places in it was computed in front."""
        if not isinstance(node, For) or node.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
            return node
        held: dict[Expr, str] = {}
        for division in divisions(node):
            held[division] = names.hoisted(self._hoisted_count)
            self._hoisted_count += 1
            text = self.expressions.scalar(division, LOOSE)
            self.line(f"const int64_t {held[division]} = {text};")
        return replace(node, body=named(node.body, held)) if held else node

    def _vectorized(self, loop: For) -> None:
        count = simplify(loop.extent)
        if not isinstance(count, Const) or int(count.value) < 1:
            raise CodegenError(f"vectorized loop {loop.var}: expected a constant number of lanes")
        lanes = Lanes(loop.var, int(count.value))
        self._vector_statement(loop.body, lanes)

    def _vector_statement(self, node: Stmt, lanes: Lanes) -> None:
        match node:
            case Store():
                text = self._vector_store(node, lanes)
                if text is None:
                    self._one_by_one(node, lanes)
                else:
                    self.line(text)
            case For(var, extent, body, LoopKind.UNROLLED) if not depends_on(extent, lanes.var):
                for copy in self._copies(var, extent, body):
                    self._vector_statement(copy, lanes)
            case For(var, extent, body, LoopKind.SERIAL) if not depends_on(extent, lanes.var):
                self._loop(var, extent, lambda: self._vector_statement(body, lanes))
            case If(Binary("and", left, right), then) if depends_on(right, lanes.var):
                self._vector_statement(If(left, If(right, then)), lanes)
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
            case _:
                self._one_by_one(node, lanes)

    def _one_by_one(self, node: Stmt, lanes: Lanes) -> None:
        if touches(node, frozenset(self.expressions.registers)):
            # A vector that is indexed by a variable would live in memory.
            for lane in range(lanes.count):
                self.statement(_replace(node, lanes.var, whole(lane)))
            return
        self._loop(lanes.var, whole(lanes.count), lambda: self.statement(node))

    def _vector_store(self, node: Store, lanes: Lanes) -> str | None:
        """The store of all lanes as one statement, None if it has no such form."""
        tensor, indices, reduce = node.tensor, node.indices, node.reduce
        dtype = self.expressions.tensors[tensor].dtype
        if not self.expressions.has_vectors(dtype, lanes) or reduce not in (None, "add", "mul"):
            return None
        if step_of(self.expressions.flat(tensor, indices), lanes.var) != 1:
            return None
        text = self.expressions.vector(node.value, lanes, dtype, LOOSE)
        if text is None:
            return None
        target = self.expressions.vector_element(tensor, indices, lanes, const="")
        in_memory = tensor not in self.expressions.registers
        if node.stream and in_memory and reduce is None and can_stream(dtype, lanes.count):
            helper = self.expressions.stream(dtype, lanes)
            return f"{helper}({self.expressions.first_lane(tensor, indices, lanes)}, {text});"
        return self._store(target, tensor, text, reduce)


def _replace(node: Stmt, var: str, value: Expr) -> Stmt:
    """A statement with a loop variable replaced, simplified."""
    return map_statements(node, lambda e: simplify(substitute(e, {var: value})))
