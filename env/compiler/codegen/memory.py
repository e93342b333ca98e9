"""Where the temporaries of a procedure live in C.

    stack      an array of known size, aligned to 64 bytes
    heap       one allocation, outside all loops around it but parallel ones
    register   local variables: vectors where vectorized loops access it, else scalars; C has no
               way to index those, so every index is a number once unrolled loops are written out

``auto`` is the stack while there is room, then the heap; so are ``shared`` and ``local``, which
mean something where there are thread blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.ir.accesses import accesses
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
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    While,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import temporaries
from kernelwright.env.compiler.ir.simplify import product, simplify, whole
from kernelwright.env.compiler.schedule.ranges import linear

# Of all ``auto`` temporaries that live at one time; the rest is on the heap.
MAX_STACK_BYTES = 1 << 16
# Of those that are asked to be on the stack: a thread has megabytes, and is not alone on them.
MAX_ASKED_STACK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """The memory of a temporary: stack, heap or register; ``lanes`` in one register."""

    memory: str
    lanes: int = 1


def places(procedure: Procedure) -> dict[str, Place]:
    """Where every temporary lives, by name.

    Raises:
        CodegenError: if a temporary cannot live where it is asked to.
    """
    found: dict[str, Place] = {}
    _place(procedure.body, 0, found)
    return found


def _place(node: Stmt, taken: int, found: dict[str, Place]) -> None:
    match node:
        case Allocate(tensor, body):
            place, size = _of(tensor, body, taken)
            found[tensor.name] = place
            _place(body, taken + size, found)
        case For(_, _, body, _) | While(_, body) | Call(_, body):
            _place(body, taken, found)
        case If(_, then):
            _place(then, taken, found)
        case Block(items):
            for item in items:
                _place(item, taken, found)
        case Store() | Prefetch() | Barrier():
            pass
        case _:
            assert_never(node)


def _of(tensor: Tensor, body: Stmt, taken: int) -> tuple[Place, int]:
    """A temporary's place and the bytes that it takes of the stack."""
    count = element_count(tensor)
    size = None if count is None else count * ITEM_BYTES[tensor.dtype]
    match tensor.scope:
        case "heap":
            return Place("heap"), 0
        case "register":
            return Place("register", _lanes(tensor, body)), 0
        case "stack":
            if size is None or taken + size > MAX_ASKED_STACK_BYTES:
                asked = "an unknown number" if size is None else str(taken + size)
                limit = f"at most {MAX_ASKED_STACK_BYTES} bytes on the stack"
                raise CodegenError(f"{tensor.name}: expected {limit}, found {asked}")
            return Place("stack"), size
        case _:
            if size is not None and taken + size <= MAX_STACK_BYTES:
                return Place("stack"), size
            return Place("heap"), 0


def element_count(tensor: Tensor) -> int | None:
    """How many elements a tensor has, if that is a number."""
    size = simplify(product(tensor.shape))
    return int(size.value) if isinstance(size, Const) else None


def flat(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    """The row-major offset of an element."""
    offset: Expr = whole(0)
    for index, extent in zip(indices, tensor.shape, strict=True):
        offset = Binary("add", Binary("mul", offset, extent), index)
    return simplify(offset)


def _touched(node: Stmt, tensor: str) -> dict[tuple[tuple[Expr, ...], tuple[For, ...]], None]:
    """The indices under which a tensor is accessed, each with the loops around it, once."""
    found = (access for access in accesses(node) if access.tensor == tensor)
    return dict.fromkeys((access.indices, access.loops) for access in found)


def _lanes(tensor: Tensor, body: Stmt) -> int:
    """How many elements of a temporary share a register; all accesses are seen to name one."""
    where = f"{tensor.name} in registers"
    if element_count(tensor) is None:
        shape = ", ".join(map(print_expr, tensor.shape))
        raise CodegenError(f"{where}: expected a shape in numbers, found [{shape}]")
    widths: dict[int, None] = {}
    starts: list[tuple[int, Expr]] = []
    for indices, around in _touched(body, tensor.name):
        offset = flat(tensor, indices)
        form = linear(offset)
        known = {loop.var: loop for loop in around}
        start = [form.constant]
        for atom, factor in form.terms:
            loop = known.get(atom.name) if isinstance(atom, Var) else None
            kind = None if loop is None else loop.kind
            if kind is LoopKind.VECTORIZED and loop is not None and factor == 1:
                extent = simplify(loop.extent)
                assert isinstance(extent, Const)
                widths[int(extent.value)] = None
                continue
            if kind is not LoopKind.UNROLLED:
                index = f"{tensor.name}[{', '.join(map(print_expr, indices))}]"
                by = print_expr(atom)
                reason = f"a number once loops are unrolled, found {index}, which moves with {by}"
                raise CodegenError(f"{where}: expected every index to be {reason}")
            start.append(factor)
        in_lanes = any(
            isinstance(atom, Var) and known[atom.name].kind is LoopKind.VECTORIZED
            for atom, _ in form.terms
        )
        starts += [(part, offset) for part in start if in_lanes]
    if len(widths) > 1:
        listed = " and ".join(map(str, widths))
        raise CodegenError(f"{where}: expected vectors of one width, found {listed} lanes")
    lanes = next(iter(widths), 1)
    if lanes > 1 and tensor.dtype in ("bool", "float16"):
        raise CodegenError(f"{where}: expected a dtype with vectors, found {tensor.dtype}")
    for part, offset in starts:
        if part % lanes:
            reason = f"vectors that start at multiples of {lanes}, found {print_expr(offset)}"
            raise CodegenError(f"{where}: expected {reason}")
    return lanes


def heap_inside(node: Stmt, where: Mapping[str, Place]) -> Iterator[Tensor]:
    """The temporaries on the heap whose one allocation may stand outside a statement: what a
    parallel loop allocates is one for each of its iterations.
    """
    match node:
        case For(_, _, _, LoopKind.PARALLEL) | Store() | Prefetch() | Barrier():
            return
        case Allocate(tensor, body):
            if where[tensor.name].memory == "heap":
                yield tensor
            yield from heap_inside(body, where)
        case For(_, _, body, _) | While(_, body) | Call(_, body):
            yield from heap_inside(body, where)
        case If(_, then):
            yield from heap_inside(then, where)
        case Block(items):
            for item in items:
                yield from heap_inside(item, where)
        case _:
            assert_never(node)


def touches(node: Stmt, names: frozenset[str]) -> bool:
    """Whether a statement accesses one of some tensors."""
    found = (access.tensor for access in accesses(node))
    own = (tensor.name for tensor in temporaries(node))
    return any(name in names for name in chain(found, own))
