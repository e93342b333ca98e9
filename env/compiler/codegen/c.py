"""LoopIR to C: one function after the calling convention, vectorized loops as GCC vector types.

`form` says what has a C form, `lanes` writes vectorized loops, `unrolled` unrolled ones,
`temporaries` what a procedure allocates, `expression` what is computed. Parallel loops carry an
OpenMP pragma, which a compiler without ``-fopenmp`` skips.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import assert_never

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.call import call_text, described
from kernelwright.env.compiler.codegen.expression import LOOSE
from kernelwright.env.compiler.codegen.form import check_form
from kernelwright.env.compiler.codegen.hoist import divisions, named
from kernelwright.env.compiler.codegen.lane_sums import LaneSum, lane_sum
from kernelwright.env.compiler.codegen.lanes import LaneStatements
from kernelwright.env.compiler.codegen.memory import places
from kernelwright.env.compiler.codegen.temporaries import Temporaries
from kernelwright.env.compiler.codegen.unrolled import copies
from kernelwright.env.compiler.codegen.work_items import as_loops
from kernelwright.env.compiler.codegen.writer import Writer
from kernelwright.env.compiler.ir.evaluate import whole_value
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Var,
    While,
)
from kernelwright.env.compiler.ir.queries import has_loads
from kernelwright.env.compiler.runtime.call import Argument, Size, prototype


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
        is_input, ascends = tensor.role == "input", "ascending" in tensor.facts
        out.append(Argument(tensor.name, tuple(shape), tensor.dtype, is_input, ascends))
    return tuple(out)


def generate(procedure: Procedure) -> str:
    """The C text of a procedure: headers, helpers and types that it uses, and the function.

    Raises:
        CodegenError: as `check_form` does, or if a shape has no C form.
    """
    check_form(procedure)
    procedure = as_loops(procedure)
    writer = Writer(procedure)
    head = prototype(procedure.name, arguments(procedure), procedure.extents)
    with writer.braces(head):
        _Statements(procedure, writer).statement(procedure.body)
        if writer.expressions.streams:
            writer.line(f"{names.fence()}();")
    includes = ["#include <math.h>", "#include <stdint.h>", "#include <stdlib.h>", ""]
    return "\n".join([*includes, *writer.expressions.preamble(writer.lines), *writer.lines]) + "\n"


class _Statements:
    """Writes statements outside vectorized loops."""

    def __init__(self, procedure: Procedure, writer: Writer) -> None:
        self._writer = writer
        self._expressions = writer.expressions
        self._temporaries = Temporaries(writer, places(procedure))
        self._lanes = LaneStatements(writer, self)
        self._hoisted_count = 0

    def statement(self, node: Stmt) -> None:
        """Write a statement."""
        node = self._hoisted(node)
        match node:
            case Store(tensor, indices, value, reduce):
                target = self._expressions.element(tensor, indices)
                text = self._expressions.scalar(value, LOOSE)
                self._writer.line(self._writer.store(target, tensor, text, reduce))
            case For():
                with self._temporaries.outside(node):
                    self._for(node)
            case If(condition, then):
                with self._writer.braces(f"if ({self._expressions.scalar(condition, LOOSE)})"):
                    self.statement(then)
            case While(condition, body):
                with (
                    self._temporaries.outside(node),
                    self._writer.braces(f"while ({self._expressions.scalar(condition, LOOSE)})"),
                ):
                    self.statement(body)
            case Block(items):
                for item in items:
                    self.statement(item)
            case Allocate(tensor, body):
                with self._temporaries.declared(tensor):
                    self.statement(body)
            case Prefetch(tensor) if tensor in self._expressions.registers:
                pass  # nothing of it is in memory
            case Prefetch(tensor, indices, write, locality):
                element = self._expressions.element(tensor, indices)
                self._writer.line(f"__builtin_prefetch(&{element}, {int(write)}, {locality});")
            case Call():
                self._call(node)
            case Barrier():
                raise AssertionError("barriers are gone: as_loops")
            case _:
                assert_never(node)

    def _for(self, node: For) -> None:
        match node:
            case For(_, _, _, LoopKind.VECTORIZED):
                self._lanes.vectorized(node)
            case For(_, _, _, LoopKind.UNROLLED):
                known = self._expressions
                found = lane_sum(node, known.registers, known.tensors)
                if found is not None:
                    self._lane_sum(found)
                    return
                for copy in copies(node):
                    self.statement(copy)
            case For(var, extent, body, LoopKind.PARALLEL):
                pragma = "#pragma omp parallel for schedule(static)"
                self.loop(var, extent, lambda: self._thread(body), pragma)
            case For(var, extent, body, _):
                self.loop(var, extent, lambda: self.statement(body))

    def _lane_sum(self, found: LaneSum) -> None:
        """A sum over lanes, where it runs."""
        with ExitStack() as around:
            for condition in found.conditions:
                head = f"if ({self._expressions.scalar(condition, LOOSE)})"
                around.enter_context(self._writer.braces(head))
            store = found.store
            target = self._expressions.element(store.tensor, store.indices)
            text = self._expressions.lane_sum(found.source, found.registers)
            self._writer.line(self._writer.store(target, store.tensor, text, store.reduce))

    def loop(
        self, var: str, extent: Expr, body: Callable[[], None], pragma: str | None = None
    ) -> None:
        """Write a loop around what ``body`` writes."""
        with ExitStack() as around:
            limit = self._expressions.scalar(extent, 11)
            if has_loads(extent):
                # The body may write what the extent was read from.
                limit, text = names.extent(var), self._expressions.scalar(extent, LOOSE)
                around.enter_context(self._writer.scope([limit]))
                self._writer.line(f"const int64_t {limit} = {text};")
            if pragma is not None:
                self._writer.line(pragma)
            head = f"for (int64_t {var} = 0; {var} < {limit}; {var}++)"
            around.enter_context(self._writer.braces(head))
            body()

    def _thread(self, body: Stmt) -> None:
        """An iteration of a parallel loop, with memory of its own."""
        before, self._expressions.streams = self._expressions.streams, False
        with self._temporaries.outside(body):
            self.statement(body)
        if self._expressions.streams:
            # What a thread stores past the caches only its own fence orders.
            self._writer.line(f"{names.fence()}();")
        self._expressions.streams = before

    def _call(self, node: Call) -> None:
        """An instruction: a call of its C, or its meaning where it has none."""
        call = call_text(node, self._expressions)
        if call is not None:
            self._writer.line(call)
            return
        self._writer.line(described(node))
        self.statement(node.body)

    def _hoisted(self, node: Stmt) -> Stmt:
        """A loop after what no iteration changes of the places in it was computed in front."""
        if not isinstance(node, For) or node.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
            return node
        held: dict[Expr, str] = {}
        for division in divisions(node):
            held[division] = names.hoisted(self._hoisted_count)
            self._hoisted_count += 1
            text = self._expressions.scalar(division, LOOSE)
            self._writer.line(f"const int64_t {held[division]} = {text};")
        return replace(node, body=named(node.body, held)) if held else node
