"""From concrete notation to LoopIR: a forall becomes a loop for each point of the merge lattice of
its variable (Kjolstad et al., OOPSLA 2017, section 6; Chou et al., OOPSLA 2018, section 5).

    one iterator           for k in 0..count: at its coordinate the body
    every coordinate       for j in 0..n; what is sparse is carried along and tested
    several iterators      while all have coordinates left: the least of them, the case that holds
                           there, and whoever stands at it goes on

A dense target is zeroed at the last place where that is still right: before the first loop that is
summed over or that leaves coordinates out. A sparse target is appended to (`assemble`).
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.ir.nodes import (
    Block,
    Procedure,
    Stmt,
)
from kernelwright.env.compiler.ir.simplify import simplify_procedure
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.sparse.assemble import Assembly
from kernelwright.env.compiler.sparse.balance import balanced_loops
from kernelwright.env.compiler.sparse.blocks import blocked_loop
from kernelwright.env.compiler.sparse.bound import Bound
from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    InOrder,
    Where,
    assigns,
)
from kernelwright.env.compiler.sparse.gather import Workspaces
from kernelwright.env.compiler.sparse.iterate import (
    iterators,
    merge_points,
)
from kernelwright.env.compiler.sparse.lattice import FULL, Point
from kernelwright.env.compiler.sparse.loops import (
    Inside,
    every_coordinate,
    has_runs,
    listed,
    one_iterator,
)
from kernelwright.env.compiler.sparse.merge import carried, merging
from kernelwright.env.compiler.sparse.minted import Minted
from kernelwright.env.compiler.sparse.notation import (
    Access,
)
from kernelwright.env.compiler.sparse.program import Program, SparseError
from kernelwright.env.compiler.sparse.shared import (
    check_shared,
    has_places_without_elements,
    sharer,
)
from kernelwright.env.compiler.sparse.values import value
from kernelwright.env.compiler.sparse.writes import (
    is_created,
    is_kept,
    overhangs,
    store,
    zero,
    zero_values,
)


def lower(program: Program) -> Procedure:
    """The loops of a program, unscheduled.

    Raises:
        SparseError: if the order of its foralls does not fit its formats, or two tensors would have
            arrays of one name.
    """
    check_array_names(program)
    lowering = Lowering(program)
    body = lowering.whole()
    arguments = program.interface or program.arguments()
    procedure = Procedure(program.name, program.extents, arguments, body)
    return replace(verify(simplify_procedure(verify(procedure))), origin=program)


def check_array_names(program: Program) -> None:
    """Refuse tensors whose arrays would have the name of another's, or of a size.

    Raises:
        SparseError: which.
    """
    owners = dict.fromkeys(program.extents, "a size")
    for access in {each.tensor: each for each in program.accesses}.values():
        mine = f"an array of {access.tensor}"
        for array in program.arrays(access):
            if (owner := owners.setdefault(array.name, mine)) != mine:
                raise SparseError(
                    f"{access.tensor}: expected another name, found one by which its array "
                    f"{array.name} is named like {owner}"
                )


class Lowering:
    """One lowering: the program, and the names that it has minted."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = Minted(
            (
                program.name,
                *program.extents,
                *(each.name for each in program.interface or program.arguments()),
            )
        )
        self.assembly = Assembly(program, self.names)
        self.workspaces = Workspaces(program, self.names)
        self.leaves_out = False  # values of a target that shares a structure

    def whole(self) -> Stmt:
        """The body of the procedure."""
        bound = Bound(self.program).located(self.program.accesses)
        target, concrete = self.program.assignment.target, self.program.concrete
        if self.program.balanced is not None:
            return balanced_loops(self)
        if not self.program.shares(target):
            body = self.statement(concrete, bound, pending=True, target=target)
            return self.workspaces.around(self.assembly.around(body))
        check_shared(self.program)
        before = self.is_left_before_values(concrete)
        body = self.statement(concrete, bound, pending=not before, target=target)
        if before or self.leaves_out or has_places_without_elements(self.program):
            body = Block((*zero_values(self, target), body))
        return self.workspaces.around(body)

    def is_left_before_values(self, node: Concrete) -> bool:
        """Whether the levels of the operand that the target shares are not the outermost loops."""
        left = set(self.program.access_loops(sharer(self.program)))
        while isinstance(node, Forall) and node.var in left:
            left.remove(node.var)
            node = node.body
        return bool(left)

    # ---- statements

    def statement(self, node: Concrete, bound: Bound, *, pending: bool, target: Access) -> Stmt:
        """``pending`` says that the elements of the target at the coordinates that are bound have
        not been zeroed yet.
        """
        match node:
            case Assign():
                return self.assign(node, bound, pending=pending)
            case Forall():
                return self.forall(node, bound, pending=pending, target=target)
            case InOrder(body):
                self.assembly.check_sequence(target, bound)
                before = zero(self, target, bound) if pending else []
                rest = [self.statement(each, bound, pending=False, target=target) for each in body]
                return Block((*before, *rest))
            case Where(consumer, producer, name):
                return self.where(consumer, producer, name, bound, pending, target)

    def assign(self, node: Assign, bound: Bound, *, pending: bool) -> Stmt:
        """One store."""
        before = zero(self, node.target, bound) if pending and node.accumulate else []
        new = value(node.expression, bound)
        out = store(self, node.target, bound, new, "add" if node.accumulate else None)
        return Block((*before, out)) if before else out

    def where(
        self,
        consumer: Concrete,
        producer: Concrete,
        name: str,
        bound: Bound,
        pending: bool,
        target: Access,
    ) -> Stmt:
        """The producer, then the consumer, around both the workspace."""
        found = self.program.workspace(name)
        assert found is not None
        made = assigns(producer)[-1].target
        first = self.statement(producer, bound, pending=not found.listed, target=made)
        second = self.statement(consumer, bound, pending=pending, target=target)
        return self.workspaces.both(found, first, second)

    def forall(self, node: Forall, bound: Bound, *, pending: bool, target: Access) -> Stmt:
        """The loops of one variable."""
        var, body = node.var, node.body
        steps = iterators(var, body, bound)
        merged = merge_points(self.program, body, steps, var)
        iterated = frozenset().union(*merged)
        self.assembly.check_ascending(
            target, var, {a: n for a, n in steps.items() if a in iterated}
        )
        is_full = all(FULL in point for point in merged)  # every coordinate, by some case
        appended = self.assembly.appends(target, var)
        kept = is_kept(self.program, var, target)
        self.assembly.check(target, var, bound, is_kept=kept)
        writes_all = kept and is_full and not overhangs(self.program, target, var)
        if kept and not appended and not writes_all:
            self.assembly.leaves_out(target)
        if self.program.shares(target) and kept:
            own = sharer(self.program)
            visits_all = merged == (frozenset((own if own in steps else FULL,)),)
            self.leaves_out = self.leaves_out or not visits_all
        before: list[Stmt] = []
        if pending and not writes_all and not is_created(self, target, var, bound):
            before, pending = zero(self, target, bound), False
        loop = self.loops(var, body, steps, merged, bound, pending, target)
        closing = self.assembly.closing(target, var, bound) if appended else []
        return Block((*before, loop, *closing))

    def loops(
        self,
        var: str,
        body: Concrete,
        steps: dict[Access, int],
        merged: tuple[Point, ...],
        bound: Bound,
        pending: bool,
        target: Access,
    ) -> Stmt:
        """One loop, or one for each point of the lattice."""
        inside = Inside(var, body, steps, bound, pending, target)
        if (size := dict(self.program.blocks_of).get(var)) is not None:
            return blocked_loop(self, inside, merged, size)
        if len(merged) == 1 and len(merged[0]) == 1:
            (only,) = merged[0]
            if only == FULL:
                return every_coordinate(self, inside, merged[0])
            if self.program.workspace(only.tensor):
                return listed(self, inside, only)
            if not has_runs(self, only, inside):
                return one_iterator(self, inside, only)
        if any(FULL in point for point in merged):
            return carried(self, inside, merged)
        return merging(self, inside, merged)
