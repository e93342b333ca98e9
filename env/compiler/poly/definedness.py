"""Whether every element that is read was written before.

For each read of a tensor: the instances of it for which no write that certainly runs touched the
element earlier, in program order. What is not affine counts as read where it may be, and as not
written (a must-write in the words of isl).

A read and a write are ordered by the loops that they share, and by which stands first inside those;
all other loops are projected out, which keeps the sets small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text
from kernelwright.env.compiler.poly.timed import Access, accesses_of, elements


@dataclass(frozen=True, slots=True)
class UndefinedRead:
    """A counterexample: an iteration that reads an element before anything wrote it; not
    ``is_certain`` if a place or a guard of it, or of a write, is not affine, so that it only may.
    """

    element: str
    iteration: tuple[tuple[str, int], ...]
    is_certain: bool

    def __str__(self) -> str:
        verb = "is" if self.is_certain else "may be"
        where = iteration_text(self.iteration)
        return f"{self.element} {verb} read in iteration {where} before it is written"


def undefined_read(
    procedure: Procedure, names: Collection[str], into: str | None = None
) -> UndefinedRead | None:
    """A read of one of some tensors, none of them an input, that no earlier write certainly covers;
    None if there is none. With ``into``, among reads for stores to that tensor alone.
    """
    for read, missing, count in _undefined(procedure, names, into):
        same = [a for a in accesses_of(procedure) if a.tensor.name == read.tensor.name]
        is_certain = all(
            elements(access, procedure, len(access.loops), exact=True) is not None
            for access in (read, *(each for each in same if each.is_write))
        )
        return _example(read, missing, procedure, count, is_certain=is_certain)
    return None


def is_defined(procedure: Procedure, tensor: str) -> bool:
    """Whether earlier writes certainly cover every read of a tensor."""
    return next(_undefined(procedure, [tensor], None), None) is None


def _undefined(
    procedure: Procedure, names: Collection[str], into: str | None
) -> Iterator[tuple[Access, isl.Map, int]]:
    """Reads that are not covered, with the elements by so many of the outermost loops."""
    found = [access for access in accesses_of(procedure) if access.tensor.name in names]
    for read in found:
        is_meant = into is None or (read.store is not None and read.store.tensor == into)
        if is_meant and not read.is_write:
            writes = [w for w in found if w.is_write and w.tensor.name == read.tensor.name]
            missing, count = _uncovered(read, writes, procedure)
            if not missing.is_empty():
                yield read, missing, count


def _uncovered(read: Access, writes: Sequence[Access], procedure: Procedure) -> tuple[isl.Map, int]:
    shared = [(*_shared(read, write), write) for write in writes]
    most = max((count for count, _, _ in shared), default=0)
    missing = elements(read, procedure, most, exact=False, inside=True)
    assert missing is not None
    # First those that stand before the read in the same iteration: what is covered needs no others.
    for count, is_first, write in sorted(shared, key=lambda each: (not each[1], -each[0])):
        if missing.is_empty():
            break
        written = elements(write, procedure, count, exact=True)
        if written is None:
            continue
        space = written.domain().get_space()
        later = isl.Map.lex_ge(space) if is_first else isl.Map.lex_gt(space)
        covered = later.apply_range(written)
        missing = missing.subtract(covered.insert_dims(isl.dim_type.in_, count, most - count))
    return missing, most


def _shared(read: Access, write: Access) -> tuple[int, bool]:
    """How many loops are around both, and whether the write stands first inside them."""
    count = 0
    for mine, other in zip(read.position, write.position, strict=False):
        if mine != other:
            return count, isinstance(mine, int) and isinstance(other, int) and other < mine
        count += isinstance(mine, str)
    return count, False


def _example(
    read: Access, missing: isl.Map, procedure: Procedure, count: int, *, is_certain: bool
) -> UndefinedRead:
    depth = len(read.loops)
    full = elements(read, procedure, depth, exact=False, inside=True)
    assert full is not None
    missing = missing.insert_dims(isl.dim_type.in_, count, depth - count)
    values = coordinates(full.intersect(missing).domain().sample_point())
    names = [loop.var for loop in read.loops]
    element = f"{read.tensor.name}[{', '.join(map(print_expr, read.indices))}]"
    return UndefinedRead(element, tuple(zip(names, values, strict=True)), is_certain)
