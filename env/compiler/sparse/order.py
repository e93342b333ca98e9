"""The order of loop variables: an iteration graph has an edge for every pair of neighbouring levels
(Kjolstad et al., OOPSLA 2017, section 4), and an order of the loops is one that follows the edges.

Edges into a level that has to be iterated must be followed. Those into one that can locate any
coordinate are followed where that breaks no other: memory is then read as it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kernelwright.env.compiler.sparse.format import Diagonal
from kernelwright.env.compiler.sparse.notation import Access, accesses, reduction_variables
from kernelwright.env.compiler.sparse.program import Program, SparseError

Edge = tuple[str, str]


def loop_variables(program: Program) -> tuple[str, ...]:
    """All loop variables: of the target's indices, of those summed over, and diagonals."""
    target = program.assignment.target
    indices = (*target.indices, *reduction_variables(program.assignment))
    out = [loop for index in indices for loop in program.loops(index)]
    for access in program.accesses:
        levels = len(program.format(access.tensor).levels)
        out += [program.loop(access, number) for number in range(levels)]
    known = dict.fromkeys(out)
    # A blocked variable is its two loops, also for tensors that are not blocked.
    blocked = {v for v in known if len(program.loops(v)) > 1 and v in dict(program.sizes)}
    return tuple(v for v in known if v not in blocked)


def default_order(program: Program) -> tuple[str, ...]:
    """An order that follows all edges that must be followed, and the others as far as they go.

    Raises:
        SparseError: if there is none: which tensors want which order.
    """
    check_loop_names(program)
    names = loop_variables(program)
    hard = list(forced_edges(program))
    check_blocks(program)
    chosen: list[Edge] = [edge for edge, _ in hard]
    if _sorted(names, chosen) is None:
        wants = "; ".join(dict.fromkeys(why for _, why in hard))
        raise SparseError(
            f"expected formats that agree on an order of the loops, found {wants}; convert one of "
            "them"
        )
    for edge in _free_edges(program):
        if _sorted(names, [*chosen, edge]) is not None:
            chosen.append(edge)
    found = _sorted(names, chosen)
    assert found is not None
    return found


def check_blocks(program: Program) -> None:
    """Refuse an index that one tensor stores in blocks and another iterates one by one.

    Raises:
        SparseError: which.
    """
    for access in program.accesses:
        for number, (kind, _) in enumerate(program.format(access.tensor).levels):
            loop = program.loop(access, number)
            if not kind.full and loop in dict(program.sizes) and (size := program.block(loop)):
                raise SparseError(
                    f"{loop}: expected {access.tensor} to be stored in blocks of {size} as another "
                    f"tensor is, found {kind.text}({loop}); convert one of them"
                )


def check_loop_names(program: Program) -> None:
    """Refuse an index that is named like a loop that the formats make: over blocks, within them, or
    over diagonals.

    Raises:
        SparseError: which.
    """
    made: dict[str, str] = {}
    for access in program.accesses:
        for index in access.indices:
            made |= {loop: f"blocks of {index}" for loop in program.loops(index) if loop != index}
        for number, (_, dimension) in enumerate(program.format(access.tensor).levels):
            if isinstance(dimension, Diagonal):
                made[program.loop(access, number)] = f"diagonals of {access.tensor}"
    for index in dict(program.sizes):
        if index in made:
            raise SparseError(
                f"{index}: expected an index of another name, found one that the loop over "
                f"{made[index]} has"
            )


def forced_edges(program: Program) -> Iterable[tuple[Edge, str]]:
    """Pairs of loops in their forced order, each with the reason in words."""
    for access in program.accesses:
        if program.shares(access) or program.is_plain(access.tensor):
            continue
        path = _path(program, access)
        for number in range(1, len(path)):
            # Dense levels can be located at any time, but an appended target's are below its place.
            located = all(program.level(access, at).full for at in range(number, len(path)))
            if access == program.assignment.target or not located:
                for before in path[number - 1]:
                    for after in path[number]:
                        if before != after:
                            why = f"{access.tensor} stores {before} before {after}"
                            yield (before, after), why


def _path(program: Program, access: Access) -> list[tuple[str, ...]]:
    """The loops of each level; a mode that others block is both its loops."""
    out = []
    for number in range(len(program.format(access.tensor).levels)):
        loop = program.loop(access, number)
        both = program.loops(loop) if loop in dict(program.sizes) else (loop,)
        out.append(both)
    return out


def _free_edges(program: Program) -> Iterable[Edge]:
    operands = dict.fromkeys(accesses(program.assignment.expression))
    for access in (*operands, program.assignment.target):
        path = [loop for loops in _path(program, access) for loop in loops]
        yield from pairwise(path)


def _sorted(names: Sequence[str], edges: Sequence[Edge]) -> tuple[str, ...] | None:
    """The names after the edges, as near to their own order as that allows; None: a cycle."""
    left, out = list(names), []
    while left:
        free = [n for n in left if not any(b == n and a in left and a != n for a, b in edges)]
        if not free:
            return None
        out.append(free[0])
        left.remove(free[0])
    return tuple(out)


def check_order(program: Program, order: Sequence[str]) -> None:
    """Refuse an order that leaves out a loop or breaks a forced edge.

    Raises:
        SparseError: which.
    """
    check_loop_names(program)
    check_blocks(program)
    names = loop_variables(program)
    if sorted(order) != sorted(names):
        raise SparseError(f"expected an order of {', '.join(names)}, found {', '.join(order)}")
    for (before, after), why in forced_edges(program):
        if order.index(before) > order.index(after):
            raise SparseError(f"{why}, but the order has {after} first")


def append_conflict(program: Program, order: Sequence[str]) -> tuple[str, str] | None:
    """A summed loop with an appended loop of the target inside it, or None: what the outer loop
    comes back to could not be added to what was appended before.
    """
    target = program.assignment.target
    if program.is_plain(target.tensor) or program.shares(target):
        return None
    kept = {loop for index in target.indices for loop in program.loops(index)}
    for number, (kind, _) in enumerate(program.format(target.tensor).levels):
        if kind.full:
            continue
        appended = program.loop(target, number)
        for outer in order[: order.index(appended)]:
            if outer not in kept:
                return outer, appended
    return None
