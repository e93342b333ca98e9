"""Directives that change the order of iterations: reorder, reverse, and tile, which is two splits
and a reorder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Var,
    loops,
    walk,
)
from kernelwright.env.compiler.ir.queries import writes
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.dependence import Conflict
from kernelwright.env.compiler.poly.model import Instance, Position
from kernelwright.env.compiler.schedule.defaults import split_names
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    dependences_of,
    find_loop,
    finish,
    no_loads,
    parts,
    replace_loop,
    replace_variables,
)
from kernelwright.env.compiler.schedule.legal import keep_order, of_kind, part_with
from kernelwright.env.compiler.schedule.partition import partition
from kernelwright.env.compiler.schedule.split import split


def reorder(procedure: Procedure, loop: str, *others: str) -> Procedure:
    """Put loops of one nest into the given order, outermost first (Halide lists the innermost
    first; TVM as here).

    The named loops exchange the places they have; loops between them stay. Guards move to the
    innermost place.

    Before::

        for i in n:
          for j in m:
            S(i, j)

    After ``reorder("j", "i")``::

        for j in m:
          for i in n:
            S(i, j)

    Legal if no dependence is turned around: no element may be touched by two iterations whose order
    the new nest inverts.

    Raises:
        ScheduleError: if the loops do not form one nest without other statements between them, an
            extent depends on a loop that would come later or reads what the nest writes, or a
            dependence is turned around; then it has the two iterations.
    """
    wanted = (loop, *others)
    if len(set(wanted)) != len(wanted) or len(wanted) < 2:
        raise ScheduleError("reorder", f"expected at least two different loops, found {wanted}")
    for name in wanted:
        find_loop("reorder", procedure, name)
    chain, guards, body = _nest(procedure, wanted)
    names = [each.var for each in chain]
    order = iter(wanted)
    target = [next(order) if name in wanted else name for name in names]
    by_name = {each.var: each for each in chain}
    for place, name in enumerate(target):
        later = set(target[place:])
        for node in walk(by_name[name].extent):
            if isinstance(node, Var) and node.name in later:
                reason = f"the extent of {name} depends on {node.name}, which would come later"
                raise ScheduleError("reorder", reason)
    for guard in guards:
        no_loads("reorder", "a guard between the loops", guard)
    for each in chain[1:]:
        no_loads("reorder", f"the extent of {each.var}", each.extent)
    outermost = chain[0]
    read = [node.tensor for node in walk(outermost.extent) if isinstance(node, Load)]
    if any(writes(outermost.body, tensor) for tensor in read):
        no_loads("reorder", f"the extent of {outermost.var}", outermost.extent)
    _keep_dependences(procedure, names, target)
    for guard in reversed(guards):
        body = If(guard, body)
    for name in reversed(target):
        body = For(name, by_name[name].extent, body, by_name[name].kind)
    nest = body
    return finish("reorder", replace_loop(procedure, names[0], lambda _: nest))


def _nest(procedure: Procedure, wanted: tuple[str, ...]) -> tuple[list[For], list[Expr], Stmt]:
    """The loops from the outermost wanted one to the innermost, the guards between them, and what
    is inside.
    """
    first = next(each for each in loops(procedure) if each.var in wanted)
    chain, guards, missing = [first], [], set(wanted) - {first.var}
    node = first.body
    while missing:
        if isinstance(node, If):
            guards.append(node.condition)
            node = node.then
        elif isinstance(node, For):
            chain.append(node)
            missing.discard(node.var)
            node = node.body
        else:
            listed = ", ".join(sorted(missing))
            reason = (
                f"expected one nest, found other statements between {chain[-1].var} and {listed}"
            )
            raise ScheduleError("reorder", reason)
    return chain, guards, node


def _keep_dependences(procedure: Procedure, before: list[str], after: list[str]) -> None:
    part = next(p for p in parts(procedure) if any(loop.var in before for loop in loops(p)))
    conflict = _turned_around(part, tuple(before), tuple(after))
    if conflict is not None:
        order = " ".join(after)
        raise ScheduleError(
            "reorder", f"the order {order} turns a dependence around", str(conflict)
        )


@lru_cache(maxsize=1024)
def _turned_around(
    part: Procedure, before: tuple[str, ...], after: tuple[str, ...]
) -> Conflict | None:
    dependences = dependences_of(part)
    moved = dict(zip(before, after, strict=True))
    positions = {
        i.name: tuple(
            moved.get(place, place) if isinstance(place, str) else place for place in i.position
        )
        for i in dependences.model.instances
    }
    return dependences.turned_around(positions)


def reverse(procedure: Procedure, loop: str) -> Procedure:
    """Run a loop from its last iteration to its first (loop reversal).

    Before::

        for i in n:
          S(i)

    After ``reverse("i")``::

        for i in n:
          S(n - 1 - i)

    Legal if the loop carries no dependence.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, its extent reads memory, or it
            carries a dependence; then it has the two iterations.
    """
    found = find_loop("reverse", procedure, loop)
    of_kind("reverse", found, LoopKind.SERIAL)
    no_loads("reverse", f"the extent of {loop}", found.extent)
    backwards = Binary("sub", whole(0), Var(loop))

    def moved(instance: Instance) -> Position | None:
        return tuple(backwards if part == loop else part for part in instance.position)

    reason = f"loop {loop} carries a dependence and cannot be reversed"
    keep_order("reverse", part_with(procedure, loop), moved, reason)
    index = linear(found.extent).shifted(-1).plus(linear(Var(loop)), -1).expression()

    def rewrite(node: For) -> Stmt:
        return replace(node, body=replace_variables(node.body, {loop: index}))

    return finish("reverse", replace_loop(procedure, loop, rewrite))


def tile(
    procedure: Procedure,
    loop: str,
    inner: str,
    rows: int,
    columns: int,
    tail: str = "guard",
) -> Procedure:
    """Cut two loops of a nest into blocks and run block by block (Halide ``tile``).

    Before::

        for i in n:
          for j in m:
            S(i, j)

    After ``tile("i", "j", 8, 16)``, where 8 divides n and 16 divides m::

        for io in n // 8:
          for jo in m // 16:
            for ii in 8:
              for ji in 16:
                S(io * 8 + ii, jo * 16 + ji)

    Elsewhere the last blocks have what ``tail`` says, as in `split`; with ``partition`` blocks that
    are whole run without a guard, and the others in copies of the nest with ``_tail`` behind the
    names of their loops.

    Raises:
        ScheduleError: as `split` and `reorder` do, and if one of these names is taken.
    """
    (io, ii), (jo, ji) = split_names(loop), split_names(inner)
    partitioned = tail == "partition"
    blocks: list[str] = []
    for name, factor, halves in ((loop, rows, (io, ii)), (inner, columns, (jo, ji))):
        extent = constant_extent(find_loop("tile", procedure, name))
        procedure = split(procedure, name, factor, *halves, "guard" if partitioned else tail)
        if partitioned and not (extent is not None and extent % factor == 0):
            blocks.append(halves[0])
    procedure = reorder(procedure, io, jo, ii, ji)
    for block in blocks:
        procedure = partition(procedure, block)
    return procedure
