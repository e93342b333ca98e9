"""Which threads touched which element of a launch, and which pair of accesses is a race."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kernelwright.env.compiler.ir.evaluate import InterpretError, Memory


class RaceError(InterpretError):
    """Two threads that touch one element, one of them writing, and nothing orders them; or threads
    that do not meet at a barrier.
    """


@dataclass(frozen=True, slots=True)
class Use:
    """Who touched an element: block, thread, and between which barriers of the launch."""

    block: tuple[int, ...]
    thread: str
    interval: int
    is_write: bool

    def conflicts(self, other: Use) -> bool:
        """Whether nothing orders two accesses to one element, one of them a write."""
        return (self.is_write or other.is_write) and (
            self.block != other.block
            or (self.interval == other.interval and self.thread != other.thread)
        )

    def __str__(self) -> str:
        done = "written" if self.is_write else "read"
        block = f" of block {self.block}" if self.block else ""
        return f"{done} by thread {self.thread}{block}"


@dataclass(slots=True)
class _Element:
    """What is known of an element: its last write, and reads of different blocks and threads.

    Two readers are enough: whoever writes next is another than one of them.
    """

    write: Use | None = None
    blocks: list[Use] = field(default_factory=list)
    threads: list[Use] = field(default_factory=list)

    def uses(self) -> Iterator[Use]:
        if self.write is not None:
            yield self.write
        yield from self.threads
        yield from self.blocks

    def add(self, use: Use) -> None:
        if use.is_write:
            self.write = use
            return
        if len(self.blocks) < 2 and all(known.block != use.block for known in self.blocks):
            self.blocks.append(use)
        self.threads = [known for known in self.threads if known.interval == use.interval]
        if len(self.threads) < 2 and all(known.thread != use.thread for known in self.threads):
            self.threads.append(use)


class Watch:
    """Every element touched in a launch."""

    def __init__(self) -> None:
        self._elements: dict[tuple[int, tuple[int, ...]], _Element] = {}
        # Memory is known by its place, which must not be given to other memory meanwhile.
        self._alive: list[Memory] = []

    def keep(self, memory: Memory) -> None:
        """Watch memory of a block, too, to the end of the launch."""
        self._alive.append(memory)

    def touch(self, memory: Memory, indices: tuple[int, ...], use: Use) -> None:
        """Note an access.

        Raises:
            RaceError: if it is a race with an earlier one.
        """
        element = self._elements.setdefault((id(memory), indices), _Element())
        for known in element.uses():
            if known.conflicts(use):
                where = f"{memory.name}{list(indices)}"
                raise RaceError(f"{where}: {known} and {use}, and no barrier is between them")
        element.add(use)
