"""Directives that cut one loop into two, or make one of two: fission and merge.

Kennedy and Allen, Optimizing Compilers for Modern Architectures (2001), chapters 2 and 6: loop
distribution and loop fusion.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    Var,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import tensors_of
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.model import Instance, Position
from kernelwright.env.compiler.schedule.copies import expanded, indexed
from kernelwright.env.compiler.schedule.defaults import copied_name
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    new_names,
    no_loads,
    replace_loop,
    replace_variables,
    taken_names,
)
from kernelwright.env.compiler.schedule.facts import facts_at
from kernelwright.env.compiler.schedule.legal import (
    PLAIN,
    contains,
    keep_order,
    no_barrier,
    of_kind,
    only_extents,
    part_with,
)


def fission(procedure: Procedure, loop: str, at: int | str, second: str | None = None) -> Procedure:
    """Run the statements of a loop's body in two loops, one after the other (loop distribution; Exo
    ``fission``).

    ``at`` says where the body is cut: before the statement that has the loop of that name, or after
    that many statements. A temporary of the body that both sides use gets an element for every
    iteration; one that only one side uses goes there, and a guard around the body goes to both. The
    second loop is called ``i_second`` where no name is given.

    Before::

        for i in n:
          A(i)
          B(i)

    After ``fission("i", 1)``::

        for i in n:
          A(i)
        for i_second in n:
          B(i_second)

    Legal if no iteration of the second side must run before a later one of the first.

    Raises:
        ScheduleError: if the body has no such place, a guard or the extent reads memory, a
            temporary would need as many elements as another loop says, or a dependence is turned
            around; then it has the two iterations.
    """
    found = find_loop("fission", procedure, loop)
    of_kind("fission", found, *PLAIN)
    no_barrier("fission", found)
    around, items = _body(loop, found.body)
    cut = _place(loop, items, at)
    if second is None:
        second = copied_name(loop, "second", taken_names(procedure))
    new_names("fission", procedure, second)
    no_loads("fission", f"the extent of {loop}", found.extent)
    _keep_sides(procedure, loop, cut)
    sides = [items[:cut], items[cut:]]
    shared: list[Allocate] = []
    for wrapper in around:
        if isinstance(wrapper, If):
            no_loads("fission", f"a guard in {loop}", wrapper.condition)
        elif all(wrapper.tensor.name in tensors_of(Block(side)) for side in sides):
            name = wrapper.tensor.name
            only_extents("fission", procedure, f"the size of {name}, one a {loop},", found.extent)
            count = facts_at(procedure, loop).greatest(found.extent, whole(0))
            shared.append(replace(wrapper, tensor=expanded(wrapper.tensor, count)))
    loops = []
    for side in sides:
        body: Stmt = Block(side)
        for each in shared:
            body = indexed(body, each.tensor.name, Var(loop))
        used = tensors_of(body) - {each.tensor.name for each in shared}
        for wrapper in reversed(around):
            if isinstance(wrapper, If) or wrapper.tensor.name in used:
                body = (
                    replace(wrapper, then=body)
                    if isinstance(wrapper, If)
                    else replace(wrapper, body=body)
                )
        loops.append(replace(found, body=body))
    last = replace_variables(loops[1].body, {loop: Var(second)})
    nest: Stmt = Block((loops[0], replace(loops[1], var=second, body=last)))
    for each in reversed(shared):
        nest = replace(each, body=nest)
    return finish("fission", replace_loop(procedure, loop, lambda _: nest))


def _body(loop: str, node: Stmt) -> tuple[list[If | Allocate], tuple[Stmt, ...]]:
    """Guards and temporaries around a loop's statements, and the statements."""
    around: list[If | Allocate] = []
    while isinstance(node, If | Allocate):
        around.append(node)
        node = node.then if isinstance(node, If) else node.body
    if not isinstance(node, Block):
        raise ScheduleError("fission", f"expected several statements in loop {loop}, found one")
    return around, node.body


def _place(loop: str, items: tuple[Stmt, ...], at: int | str) -> int:
    """How many statements come before the cut."""
    if isinstance(at, str):
        found = [place for place, item in enumerate(items) if contains(item, at)]
        if not found or found[0] == 0:
            reason = f"expected a loop in {loop} after its first statement, found {at!r}"
            raise ScheduleError("fission", reason)
        return found[0]
    if isinstance(at, bool) or not isinstance(at, int) or not 0 < at < len(items):
        reason = f"expected a loop or a number of statements from 1 to {len(items) - 1}"
        raise ScheduleError("fission", f"{reason}, found {at!r}")
    return at


def _keep_sides(procedure: Procedure, loop: str, cut: int) -> None:
    def moved(instance: Instance) -> Position | None:
        if loop not in instance.variables:
            return None
        place = instance.position.index(loop)
        # Behind the loop variable stand its place in the loop and the one among the statements.
        among = instance.position[place + 2]
        assert isinstance(among, int)
        return (
            *instance.position[:place],
            int(among >= cut),
            *instance.position[place:],
        )

    reason = f"cutting {loop} there turns a dependence around"
    keep_order("fission", part_with(procedure, loop), moved, reason)


def merge(procedure: Procedure, loop: str, other: str) -> Procedure:
    """Run two loops of the same extent that follow each other as one (loop fusion; TVM ``merge``).

    Before::

        for i in n:
          A(i)
        for p in n:
          B(p)

    After ``merge("i", "p")``::

        for i in n:
          A(i)
          B(i)

    Legal if no iteration of the second loop needs a later one of the first to have run.

    Raises:
        ScheduleError: if the second loop does not follow the first directly, their extents or kinds
            differ, an extent reads memory, or a dependence is turned around; then it has the two
            iterations.
    """
    first, then = find_loop("merge", procedure, loop), find_loop("merge", procedure, other)
    for each in (first, then):
        of_kind("merge", each, *PLAIN)
        no_barrier("merge", each)
        no_loads("merge", f"the extent of {each.var}", each.extent)
    if first.kind is not then.kind:
        reason = f"expected loops of one kind, found {loop} {first.kind} and {other} {then.kind}"
        raise ScheduleError("merge", reason)
    if simplify(first.extent) != simplify(then.extent):
        extents = f"{print_expr(first.extent)} and {print_expr(then.extent)}"
        raise ScheduleError("merge", f"expected one extent, found {extents}")
    joined = replace(
        first, body=Block((first.body, replace_variables(then.body, {other: Var(loop)})))
    )
    done = False

    def statement(node: Stmt) -> Stmt:
        nonlocal done
        if isinstance(node, Block):
            for place, pair in enumerate(zip(node.body, node.body[1:], strict=False)):
                if pair == (first, then):
                    done = True
                    return Block((*node.body[:place], joined, *node.body[place + 2 :]))
        return node

    body = map_statements(procedure.body, lambda e: e, statement)
    if not done:
        raise ScheduleError("merge", f"expected loop {other} directly after loop {loop}")
    _keep_both(procedure, first, then)
    return finish("merge", replace(procedure, body=body))


def _keep_both(procedure: Procedure, first: For, then: For) -> None:
    part = part_with(procedure, first.var, then.var)
    if part is procedure:
        # Two statements of the procedure itself: what is around them does not matter.
        part = replace(procedure, body=Block((first, then)))

    def moved(instance: Instance) -> Position | None:
        for side, each in enumerate((first, then)):
            if each.var in instance.variables:
                place = instance.position.index(each.var)
                index: Expr = Var(each.var)
                before, rest = instance.position[: place - 1], instance.position[place + 2 :]
                # Both at the first one's place among the statements.
                at = instance.position[place - 1]
                assert isinstance(at, int)
                return (*before, at - side, index, side, *rest)
        return None

    reason = f"{then.var} cannot run along with {first.var}"
    keep_order("merge", part, moved, reason)
