"""What programs with block and thread levels must keep: they mean with threads what they mean in
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.levels import (
    BLOCK_SCOPES,
    OWN_SCOPES,
    THREAD_LEVELS,
    has_kind,
    is_launch,
    outermost,
)
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Allocate,
    Barrier,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    statements,
)
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import has_loads, mentions
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.poly.threads import own_memory, unordered

_TOGETHER = (LoopKind.PARALLEL, LoopKind.VECTORIZED)


def check_threads(op: str, procedure: Procedure) -> Procedure:
    """The procedure itself, if the threads of its blocks do what its text does in order.

    Raises:
        ScheduleError: if levels are nested wrongly, not all threads reach a barrier, memory is on
            the wrong side of a block, or two threads of a block depend on one another without a
            barrier between them; then it has the two iterations.
    """
    for statement in outermost(procedure.body):
        if is_launch(statement):
            fault = _fault(replace(procedure, body=statement))
            if fault is not None:
                raise ScheduleError(op, *fault)
    return procedure


# A directive leaves most launches as they were.
@lru_cache(maxsize=256)
def _fault(launch: Procedure) -> tuple[str, str | None] | None:
    """What is wrong with a launch, and the two iterations where there are any."""
    has_blocks = has_kind(launch.body, BLOCK_KINDS)
    sizes = _sizes(launch.body)
    around = _Around((), has_blocks=has_blocks, sizes=tuple(sizes.items()))
    form = next(_faults(launch.body, around), None)
    if form is not None:
        return form, None
    if not sizes:
        return None
    conflict = unordered(launch)
    if conflict is not None:
        return "two threads of a block meet without a barrier between them", str(conflict)
    conflict = own_memory(launch)
    if conflict is not None:
        return "two threads of a block meet in memory of which each has its own", str(conflict)
    return None


def _sizes(body: Stmt) -> dict[LoopKind, int]:
    """How many threads a block has along each level, as far as extents are numbers."""
    sizes: dict[LoopKind, int] = {}
    for node in statements(body):
        if isinstance(node, For) and node.kind in THREAD_LEVELS:
            extent = simplify(node.extent)
            size = int(extent.value) if isinstance(extent, Const) else 1
            sizes[node.kind] = max(size, sizes.get(node.kind, 1))
    return sizes


@dataclass(frozen=True, slots=True)
class _Around:
    """What is around a statement of a launch, and what is known of the whole of it."""

    path: tuple[Stmt, ...]
    has_blocks: bool
    sizes: tuple[tuple[LoopKind, int], ...]

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(node for node in self.path if isinstance(node, For))

    @property
    def in_block(self) -> bool:
        """Whether a whole block, or a part of one, is meant."""
        return not self.has_blocks or any(loop.kind in BLOCK_KINDS for loop in self.loops)

    @property
    def common(self) -> tuple[Stmt, ...]:
        """What is around it inside its block."""
        last = max(
            (i for i, n in enumerate(self.path) if isinstance(n, For) and n.kind in BLOCK_KINDS),
            default=-1,
        )
        return self.path[last + 1 :]


def _faults(node: Stmt, around: _Around) -> Iterator[str]:
    match node:
        case For(_, _, _, kind) if kind in BLOCK_KINDS:
            yield from _block_loop(node, around)
        case For(_, _, _, kind) if kind in THREAD_LEVELS:
            yield from _thread_loop(node, around)
        case Barrier():
            yield from _barrier(around)
        case Allocate(tensor, body) if tensor.scope in BLOCK_SCOPES:
            bound = [loop.var for loop in around.loops if loop.kind in THREAD_LEVELS]
            if has_kind(body, BLOCK_KINDS):
                yield f"{tensor.scope} {tensor.name} is outside the blocks that it belongs to"
            elif bound and tensor.scope not in OWN_SCOPES:
                owner = f"{tensor.scope} {tensor.name} is a block's"
                yield f"{owner}, and inside thread loop {bound[-1]}"
    inside = replace(around, path=(*around.path, node))
    for child in below(node):
        yield from _faults(child, inside)


def _block_loop(loop: For, around: _Around) -> Iterator[str]:
    for outer in around.loops:
        if outer.kind is loop.kind:
            yield f"loops {outer.var} and {loop.var}, one in the other, are both {loop.kind}"
        elif outer.kind in (*THREAD_LEVELS, *_TOGETHER, LoopKind.UNROLLED):
            yield f"block loop {loop.var} is inside {outer.kind} loop {outer.var}"
    blocks = [each for each in around.loops if each.kind in BLOCK_KINDS]
    if blocks and any(not isinstance(node, If) for node in around.common):
        nearest = blocks[-1].var
        yield f"expected block loop {loop.var} directly inside block loop {nearest}"


def _thread_loop(loop: For, around: _Around) -> Iterator[str]:
    if not around.in_block:
        yield f"thread loop {loop.var} is outside the block loops"
    extent = simplify(loop.extent)
    if not isinstance(extent, Const) or int(extent.value) < 1:
        found = print_expr(extent)
        yield f"expected a number of threads in loop {loop.var}, found {found}"
    for outer in around.loops:
        if outer.kind is loop.kind:
            yield f"loops {outer.var} and {loop.var}, one in the other, are both {loop.kind}"
        elif outer.kind in _TOGETHER:
            yield f"thread loop {loop.var} is inside {outer.kind} loop {outer.var}"
    yield from _common(around, f"thread loop {loop.var}")


def _barrier(around: _Around) -> Iterator[str]:
    sizes = dict(around.sizes)
    for loop in around.loops:
        if loop.kind in _TOGETHER:
            yield f"a barrier is inside {loop.kind} loop {loop.var}"
        elif loop.kind in THREAD_LEVELS and isinstance(loop.extent, Const):
            count, wanted = int(loop.extent.value), sizes[loop.kind]
            if count != wanted:
                reason = f"{count} of {wanted} threads along {loop.kind}"
                yield f"a barrier is inside thread loop {loop.var}, which {reason} run"
    yield from _common(around, "a barrier")


def _common(around: _Around, what: str) -> Iterator[str]:
    """Whether all threads agree on what is around something that all of them run."""
    bound = {loop.var for loop in around.loops if loop.kind in THREAD_LEVELS}
    for node in around.common:
        if isinstance(node, For):
            decided: Expr | None = node.extent
        else:
            decided = node.condition if isinstance(node, If) else None
        if decided is None:
            continue
        varying = next((name for name in sorted(bound) if mentions(decided, name)), None)
        if varying is not None and not (isinstance(node, For) and node.kind in THREAD_LEVELS):
            yield f"{what} is under {print_expr(decided)}, which differs between threads"
        if has_loads(decided):
            yield f"{what} is under {print_expr(decided)}, which threads may read differently"
