"""Blocks and threads, executed: each thread runs from barrier to barrier, and all run up to one
before any goes past it.

An access is a race if another block touched the element in the same launch, or another thread of
the block since the last barrier, one of the two writing; it is reported with the pair. So is a
barrier that not all threads of a block reach.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import count, product
from typing import Any, TypeAlias

from numpy.typing import NDArray

from kernelwright.env.compiler.ir.evaluate import Elements, InterpretError, Memory, evaluate
from kernelwright.env.compiler.ir.execute import execute, while_holds
from kernelwright.env.compiler.ir.levels import (
    BLOCK_SCOPES,
    OWN_SCOPES,
    THREAD_LEVELS,
    has_kind,
    is_launch,
)
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Allocate,
    Barrier,
    Block,
    Call,
    For,
    If,
    LoopKind,
    Stmt,
    Tensor,
    While,
    statements,
)
from kernelwright.env.compiler.ir.races import RaceError, Use, Watch

# Where a thread waits: the barrier, and the iteration of the loops around it.
_Place: TypeAlias = tuple[int, tuple[tuple[str, int], ...]]
_Coordinates: TypeAlias = Mapping[LoopKind, int]


@dataclass(frozen=True, slots=True)
class _View:
    """Memory that threads share, as one thread sees it."""

    memory: Memory
    thread: _Thread

    @property
    def data(self) -> NDArray[Any]:
        return self.memory.data

    def read(self, indices: tuple[int, ...]) -> Any:
        self.thread.touch(self.memory, indices, is_write=False)
        return self.memory.read(indices)

    def write(self, indices: tuple[int, ...], value: Any) -> None:
        self.thread.touch(self.memory, indices, is_write=True)
        self.memory.write(indices, value)


class Grid:
    """One launch: a statement with block or thread levels, in the memory of who launches it."""

    def __init__(self, node: Stmt, variables: dict[str, Any], memory: dict[str, Elements]) -> None:
        self._node, self._variables, self._memory = node, variables, memory
        self._intervals = count()

    def run(self) -> None:
        """Run it.

        Raises:
            RaceError: if threads race, or do not meet at a barrier.
            InterpretError: if it goes wrong otherwise.
        """
        if has_kind(self._node, BLOCK_KINDS):
            self._launcher(self._node, (), Watch())
        else:
            self._block(self._node, (), Watch())

    def _launcher(self, node: Stmt, block: tuple[int, ...], watch: Watch) -> None:
        """What is around the block-bound loops, in order."""
        variables, memory = self._variables, self._memory
        match node:
            case _ if block and not has_kind(node, BLOCK_KINDS):
                self._block(node, block, watch)
            case _ if not is_launch(node):
                execute(node, variables, memory)
            case For(var, extent, body, kind):
                if kind in THREAD_LEVELS:
                    raise InterpretError(f"expected thread loop {var} inside the block loops")
                for i in range(evaluate(extent, variables, memory)):
                    variables[var] = i
                    if kind in BLOCK_KINDS:
                        self._launcher(body, (*block, i), watch)
                    else:
                        # Every iteration around the blocks is a launch of its own.
                        self._launcher(body, block, watch if block else Watch())
                variables.pop(var, None)
            case If(condition, then):
                if evaluate(condition, variables, memory):
                    self._launcher(then, block, watch)
            case While(_, body):
                for _ in while_holds(node, variables, memory):
                    self._launcher(body, block, watch if block else Watch())
            case Block(items):
                for item in items:
                    self._launcher(item, block, watch if block else Watch())
            case Allocate(tensor, body):
                if tensor.scope in BLOCK_SCOPES:
                    found = f"{tensor.scope} {tensor.name}"
                    raise InterpretError(f"expected memory of a block inside it, found {found}")
                memory[tensor.name] = Memory.of(tensor, variables)
                self._launcher(body, block, watch)
                del memory[tensor.name]
            case Call(_, body):
                self._launcher(body, block, watch)

    def _block(self, node: Stmt, block: tuple[int, ...], watch: Watch) -> None:
        """All threads of one block, from barrier to barrier."""
        sizes = self._sizes(node)
        shared: dict[tuple[object, ...], Memory] = {}
        interval = next(self._intervals)
        waiting: list[tuple[_Thread, Generator[_Place, None, None]]] = []
        for place in product(*(range(size) for size in sizes.values())):
            coordinates = dict(zip(sizes, place, strict=True))
            thread = _Thread(block, coordinates, interval, watch, shared)
            memory = {name: thread.view(found) for name, found in self._memory.items()}
            waiting.append((thread, thread.run(node, dict(self._variables), memory, {})))
        while waiting:
            reached: dict[_Place | None, str] = {}
            still = []
            for thread, steps in waiting:
                place_of = next(steps, None)
                reached.setdefault(place_of, thread.name)
                if place_of is not None:
                    still.append((thread, steps))
            if len(reached) > 1:
                raise RaceError(_divergence(reached))
            interval = next(self._intervals)
            for thread, _ in still:
                thread.interval = interval
            waiting = still

    def _sizes(self, node: Stmt) -> dict[LoopKind, int]:
        """How many threads a block has along each of its levels."""
        sizes: dict[LoopKind, int] = {}
        for loop in statements(node):
            if isinstance(loop, For) and loop.kind in THREAD_LEVELS:
                try:
                    size = evaluate(loop.extent, self._variables, {})
                except KeyError:
                    reason = f"expected the extent of {loop.var} to be known for a whole block"
                    raise InterpretError(reason) from None
                sizes[loop.kind] = max(size, sizes.get(loop.kind, 1))
        return sizes


def _divergence(reached: dict[_Place | None, str]) -> str:
    """Two threads that are at different places when they should meet."""
    (first, one), (second, other) = list(reached.items())[:2]
    texts = []
    for place, thread in ((first, one), (second, other)):
        if place is None:
            texts.append(f"thread {thread} ends")
        else:
            at = ", ".join(f"{name}={value}" for name, value in place[1])
            texts.append(f"thread {thread} waits at a barrier{f' ({at})' if at else ''}")
    return f"{texts[0]}, and {texts[1]}"


class _Thread:
    """One thread of a block."""

    def __init__(
        self,
        block: tuple[int, ...],
        coordinates: _Coordinates,
        interval: int,
        watch: Watch,
        shared: dict[tuple[object, ...], Memory],
    ) -> None:
        self._block, self._coordinates, self._watch = block, coordinates, watch
        self._shared = shared
        self.interval = interval
        self.name = "(" + ", ".join(f"{k}={i}" for k, i in coordinates.items()) + ")"

    def touch(self, memory: Memory, indices: tuple[int, ...], *, is_write: bool) -> None:
        """Note an access to memory that threads share."""
        use = Use(self._block, self.name, self.interval, is_write)
        self._watch.touch(memory, indices, use)

    def view(self, memory: Elements) -> Elements:
        """Memory of the launcher, as this thread sees it."""
        assert isinstance(memory, Memory)
        return _View(memory, self)

    def run(
        self,
        node: Stmt,
        variables: dict[str, Any],
        memory: dict[str, Elements],
        bound: Mapping[LoopKind, str],
    ) -> Generator[_Place, None, None]:
        """Run a statement, stopping at every barrier; ``bound`` has the loops around it that are
        bound to levels.
        """
        if not _is_common(node):
            # Of the levels that no loop around it is bound to, thread 0 does it.
            if not any(i for kind, i in self._coordinates.items() if kind not in bound):
                execute(node, variables, memory)
            return
        match node:
            case Barrier():
                around = [item for item in variables.items() if item[0] not in bound.values()]
                yield id(node), tuple(around)
            case For(var, extent, body, kind) if kind in THREAD_LEVELS:
                if kind in bound:
                    raise InterpretError(f"{var} and {bound[kind]} around it are both {kind}")
                if self._coordinates[kind] < evaluate(extent, variables, memory):
                    variables[var] = self._coordinates[kind]
                    yield from self.run(body, variables, memory, {**bound, kind: var})
                    del variables[var]
            case For(var, extent, body, _):
                for i in range(evaluate(extent, variables, memory)):
                    variables[var] = i
                    yield from self.run(body, variables, memory, bound)
                variables.pop(var, None)
            case If(condition, then):
                if evaluate(condition, variables, memory):
                    yield from self.run(then, variables, memory, bound)
            case While(_, body):
                for _ in while_holds(node, variables, memory):
                    yield from self.run(body, variables, memory, bound)
            case Block(items):
                for item in items:
                    yield from self.run(item, variables, memory, bound)
            case Allocate(tensor, body):
                memory[tensor.name] = self._allocated(tensor, variables)
                yield from self.run(body, variables, memory, bound)
                del memory[tensor.name]
            case Call(_, body):
                yield from self.run(body, variables, memory, bound)

    def _allocated(self, tensor: Tensor, variables: Mapping[str, Any]) -> Elements:
        """A temporary: this thread's own, or that of all threads in the same iterations."""
        if tensor.scope in OWN_SCOPES:
            return Memory.of(tensor, variables)
        key = (tensor.name, tuple(variables.items()))
        if key not in self._shared:
            self._shared[key] = Memory.of(tensor, variables)
            self._watch.keep(self._shared[key])
        return _View(self._shared[key], self)


def _is_common(node: Stmt) -> bool:
    """Whether all threads run a statement: it has a barrier, or a loop bound to threads."""
    return any(
        isinstance(s, Barrier) or (isinstance(s, For) and s.kind in THREAD_LEVELS)
        for s in statements(node)
    )
