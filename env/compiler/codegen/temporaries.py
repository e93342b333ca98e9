"""Temporaries in C: variables, arrays on the stack, and what is allocated on the heap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kernelwright.env.compiler.codegen.memory import Place, element_count, heap_inside
from kernelwright.env.compiler.codegen.writer import Writer
from kernelwright.env.compiler.ir.nodes import Stmt, Tensor
from kernelwright.env.compiler.ir.simplify import product, simplify
from kernelwright.env.compiler.runtime.call import C_TYPES


class Temporaries:
    """Writes the declarations of temporaries, each in the memory where it has its place."""

    def __init__(self, writer: Writer, places: Mapping[str, Place]) -> None:
        self._writer = writer
        self._places = places
        self._on_heap: set[str] = set()
        for name, place in places.items():
            if place.memory == "register":
                writer.expressions.registers[name] = place.lanes

    @contextmanager
    def declared(self, tensor: Tensor) -> Iterator[None]:
        """A temporary for as long as what is written inside runs."""
        writer = self._writer
        writer.expressions.tensors[tensor.name] = tensor
        place = self._places[tensor.name]
        if tensor.name in self._on_heap:
            yield
        elif place.memory == "heap":
            with self._heap([tensor]):
                yield
        else:
            c_type, count = C_TYPES[tensor.dtype], element_count(tensor)
            assert count is not None
            variables = writer.expressions.variables(tensor, count, place.memory)
            with writer.scope(variables):
                if place.memory == "stack":
                    aligned = "__attribute__((aligned(64)))"
                    writer.line(f"{c_type} {tensor.name}[{count}] {aligned};")
                else:
                    writer.line(writer.expressions.register_variables(tensor, count))
                yield
        del writer.expressions.tensors[tensor.name]

    @contextmanager
    def outside(self, node: Stmt) -> Iterator[None]:
        """What a loop allocates on the heap, allocated once and outside: no iteration finds what
        another left there.
        """
        inside = [t for t in heap_inside(node, self._places) if t.name not in self._on_heap]
        if not inside:
            yield
            return
        with self._heap(inside):
            yield

    @contextmanager
    def _heap(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Allocations that last for a statement."""
        writer = self._writer
        self._on_heap |= {tensor.name for tensor in tensors}
        with writer.scope([tensor.name for tensor in tensors]):
            for tensor in tensors:
                c_type, size = C_TYPES[tensor.dtype], simplify(product(tensor.shape))
                rounded = f"(({writer.expressions.scalar(size)}) * sizeof({c_type}) + 63) / 64 * 64"
                writer.line(f"{c_type} *restrict {tensor.name} = aligned_alloc(64, {rounded});")
                writer.line(f"if (!{tensor.name}) abort();")
            yield
            for tensor in reversed(tensors):
                writer.line(f"free({tensor.name});")
        self._on_heap -= {tensor.name for tensor in tensors}
