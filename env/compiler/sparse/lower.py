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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    While,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.simplify import FALSE, simplify, simplify_procedure, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.sparse.assemble import Assembly
from kernelwright.env.compiler.sparse.balance import balanced_loops
from kernelwright.env.compiler.sparse.blocks import blocked_loop
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.branch_free import branch_free
from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    InOrder,
    Where,
    assigns,
    contribution,
    restricted,
)
from kernelwright.env.compiler.sparse.format import Outer
from kernelwright.env.compiler.sparse.lattice import FULL, Point, points
from kernelwright.env.compiler.sparse.levels.base import minus, plus
from kernelwright.env.compiler.sparse.minted import Minted
from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Expression,
    Literal,
    Mul,
    Neg,
    Sub,
    accesses,
)
from kernelwright.env.compiler.sparse.program import Program, SparseError, plain_indices
from kernelwright.env.compiler.sparse.shared import (
    check_shared,
    has_places_without_elements,
    sharer,
)


def lower(program: Program) -> Procedure:
    """The loops of a program, unscheduled.

    Raises:
        SparseError: if the order of its foralls does not fit its formats.
    """
    lowering = Lowering(program)
    body = lowering.whole()
    arguments = program.interface or program.arguments()
    procedure = Procedure(program.name, program.extents, arguments, body)
    return replace(verify(simplify_procedure(verify(procedure))), origin=program)


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
        self.leaves_out = False  # values of a target that shares a structure

    def whole(self) -> Stmt:
        """The body of the procedure."""
        bound = Bound(self.program).located(self.program.accesses)
        target, concrete = self.program.assignment.target, self.program.concrete
        if self.program.balanced is not None:
            return balanced_loops(self)
        if not self.program.shares(target):
            return self.assembly.around(
                self.statement(concrete, bound, pending=True, target=target)
            )
        check_shared(self.program)
        before = self.is_left_before_values(concrete)
        body = self.statement(concrete, bound, pending=not before, target=target)
        if before or self.leaves_out or has_places_without_elements(self.program):
            body = Block((*self.zero_values(target), body))
        return self.assembly.around(body)

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
                zero = self.zero(target, bound) if pending else []
                rest = [self.statement(each, bound, pending=False, target=target) for each in body]
                return Block((*zero, *rest))
            case Where(consumer, producer, name):
                return self.where(consumer, producer, name, bound, pending, target)

    def assign(self, node: Assign, bound: Bound, *, pending: bool) -> Stmt:
        """One store."""
        before = self.zero(node.target, bound) if pending and node.accumulate else []
        value = self.value(node.expression, bound)
        store = self.store(node.target, bound, value, "add" if node.accumulate else None)
        return Block((*before, store)) if before else store

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
        return self.assembly.workspace(found, first, second)

    def forall(self, node: Forall, bound: Bound, *, pending: bool, target: Access) -> Stmt:
        """The loops of one variable."""
        var, body = node.var, node.body
        steps = self.iterators(var, body, bound)
        merged = self.lattice(body, steps, var)
        self.assembly.check_ascending(target, var, steps)
        is_full = merged == (frozenset((FULL,)),)
        appended = self.assembly.appends(target, var)
        kept = self.is_kept(var, target)
        self.assembly.check(target, var, bound, is_kept=kept)
        if kept and not appended and not is_full:
            self.assembly.leaves_out(target)
        if self.program.shares(target) and kept:
            own = sharer(self.program)
            visits_all = merged == (frozenset((own if own in steps else FULL,)),)
            self.leaves_out = self.leaves_out or not visits_all
        zero: list[Stmt] = []
        writes_all = kept and is_full and not self.overhangs(target, var)
        if pending and not writes_all and not self.is_created(target, var, bound):
            zero, pending = self.zero(target, bound), False
        loop = self.loops(var, body, steps, merged, bound, pending, target)
        closing = self.assembly.closing(target, var, bound) if appended else []
        return Block((*zero, loop, *closing))

    def is_created(self, target: Access, var: str, bound: Bound) -> bool:
        """Whether the target's elements only come to be in this loop or further in."""
        if self.program.shares(target):
            own = sharer(self.program)
            return bound.place(own).depth < len(self.program.format(own.tensor).levels)
        return self.assembly.appends(target, var) or self.assembly.appends_below(target, bound)

    def is_kept(self, var: str, target: Access) -> bool:
        """Whether a loop is over an index of the target."""
        return any(var in self.program.loops(index) for index in target.indices)

    def overhangs(self, target: Access, var: str) -> bool:
        """Whether blocks of a target can reach beyond its mode in a loop: no element is there."""
        if self.program.workspace(target.tensor):
            return False
        for _, dimension in self.program.format(target.tensor).levels:
            if isinstance(dimension, Outer):
                index = target.indices[dimension.mode]
                rest = Binary("mod", self.program.size(index), whole(dimension.size))
                if var in self.program.loops(index) and simplify(rest) != whole(0):
                    return True
        return False

    # ---- iterators

    def iterators(self, var: str, body: Concrete, bound: Bound) -> dict[Access, int]:
        """The accesses that have to be iterated at a variable, with the number of the level.

        Raises:
            SparseError: if a level above has not been followed yet.
        """
        out = {}
        for access in self.read(body):
            if self.program.is_plain(access.tensor):
                continue
            depth = bound.place(access).depth
            for number in range(depth, len(self.program.format(access.tensor).levels)):
                if self.program.loop(access, number) != var:
                    continue
                if self.program.level(access, number).full:
                    break
                if number != depth:
                    above = self.program.loop(access, depth)
                    raise SparseError(
                        f"{access.tensor} stores {above} before {var}, found forall {var} outside "
                        f"forall {above}"
                    )
                out[access] = number
        return out

    def read(self, body: Concrete) -> tuple[Access, ...]:
        """All accesses that a statement reads, workspaces left out."""
        found = (a for each in assigns(body) for a in accesses(each.expression))
        return tuple(a for a in dict.fromkeys(found) if self.program.workspace(a.tensor) is None)

    def lattice(self, body: Concrete, steps: dict[Access, int], var: str) -> tuple[Point, ...]:
        """The points of a variable's merge lattice.

        Raises:
            SparseError: if iterators that are not ordered would have to be merged.
        """
        listed = {
            access
            for each in assigns(body)
            for access in accesses(each.expression)
            if (space := self.program.workspace(access.tensor)) and space.listed
        }

        def kind(access: Access) -> str:
            if access in listed and var in access.indices:
                return "iterate"
            if access not in steps:
                return "full"
            return "either" if self.program.level(access, steps[access]).locates else "iterate"

        found = points(contribution(body), kind)
        for point in found:
            for access in point - {FULL} if len(point) > 1 else ():
                if access in steps and not self.program.level(access, steps[access]).ordered:
                    others = ", ".join(sorted(a.tensor or "a dense operand" for a in point))
                    raise SparseError(
                        f"{access.tensor}: expected an ordered level at {var} to merge "
                        f"({others}), found {self.program.level(access, steps[access]).text}"
                    )
        return found

    def count(self, access: Access, number: int, bound: Bound) -> Expr:
        """How many positions an iterator goes through."""
        place = bound.place(access)
        kind = self.program.level(access, number)
        if place.until is not None:
            return minus(place.until, place.position)
        return kind.count(bound.site(access, number), place.position)

    def position(self, access: Access, number: int, bound: Bound, k: Expr) -> Expr:
        """An iterator's k-th position."""
        place = bound.place(access)
        if place.until is not None:
            return plus(place.position, k)
        kind = self.program.level(access, number)
        return kind.position(bound.site(access, number), place.position, k)

    def coordinate(self, access: Access, number: int, bound: Bound, position: Expr) -> Expr:
        """The coordinate at an iterator's position."""
        kind = self.program.level(access, number)
        return kind.coordinate(bound.site(access, number), bound.place(access).position, position)

    # ---- loops

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
                return self.every_coordinate(inside, merged[0])
            if self.program.workspace(only.tensor):
                return self.listed(inside, only)
            if not self.runs(only, inside):
                return self.one_iterator(inside, only)
        if any(FULL in point for point in merged):
            return self.carried(inside, merged)
        return self.merging(inside, merged)

    def runs(self, access: Access, inside: Inside) -> bool:
        """Whether positions of one coordinate have to be visited as one: the level is not unique,
        and the target appends here or stores instead of adding up.
        """
        if self.program.level(access, inside.steps[access]).unique:
            return False
        target = inside.target
        if self.assembly.appends(target, inside.var) or self.assembly.appends_below(
            target, inside.bound
        ):
            return True
        return not all(each.accumulate for each in assigns(inside.body))

    def one_iterator(self, inside: Inside, access: Access) -> Stmt:
        """A loop over the positions of one level."""
        number, bound = inside.steps[access], inside.bound
        count = simplify(self.count(access, number, bound))
        is_one = count == whole(1)
        name = "" if is_one else self.names.new(inside.var)
        position = self.position(access, number, bound, whole(0) if is_one else Var(name))
        value = self.coordinate(access, number, bound, position)
        kind, place = self.program.level(access, number), bound.place(access)
        now = bound.with_place(access, Place(number + 1, position))
        there = kind.present(bound.site(access, number), place.position, position)
        body = self.at(inside, now, value, frozenset((access,)))
        if there is not None and not self.is_harmless(access, number, inside):
            body = If(there, body)
        return body if is_one else For(name, count, body)

    def is_harmless(self, access: Access, number: int, inside: Inside) -> bool:
        """Whether positions that hold no coordinate may be visited like others: their value is zero
        and is only added, or the loops outside leave them out.
        """
        kind = self.program.level(access, number)
        if kind.computed:
            return access in inside.bound.trimmed
        adds = all(each.accumulate for each in assigns(inside.body))
        return kind.relaxes and adds and not self.assembly.appends(inside.target, inside.var)

    def listed(self, inside: Inside, access: Access) -> Stmt:
        """A loop over the elements of a workspace that are in use."""
        space = self.program.workspace(access.tensor)
        assert space is not None
        name = self.names.new(inside.var)
        value = self.assembly.listed_coordinate(space, Var(name))
        body = self.at(inside, inside.bound, value, frozenset((access,)))
        clear = self.assembly.cleared(space, value)
        return For(name, self.assembly.listed_count(space), Block((body, clear)))

    def every_coordinate(self, inside: Inside, point: Point) -> Stmt:
        """A loop over all coordinates."""
        name = self.names.new(inside.var)
        trim = self.trimmed(inside)
        if trim is None:
            body = self.at(inside, inside.bound, Var(name), point)
            return For(name, self.program.extent(inside.var), body)
        access, start, count = trim
        now = inside.bound.with_trimmed(access)
        return For(name, count, self.at(inside, now, plus(start, Var(name)), point))

    def trimmed(self, inside: Inside) -> tuple[Access, Expr, Expr] | None:
        """The access that is stored by diagonals with its rows here, and of the diagonal at hand
        the first row and the number of rows that have a column; None where it is not needed in
        all that is computed.
        """
        for access in self.read(inside.body):
            form = self.program.format(access.tensor)
            for number in range(len(form.levels)):
                addends = form.addends(number + 1)
                if addends is None or self.program.loop(access, addends[1] - 1) != inside.var:
                    continue
                diagonal = inside.bound.index(self.program.loop(access, addends[0] - 1))
                if diagonal is None or restricted(inside.body, {access}) is not None:
                    continue
                rows = self.program.extent(inside.var)
                columns = self.program.extent(self.program.loop(access, number))
                # column = diagonal + row - (rows - 1), from 0 to columns - 1
                lead = minus(minus(rows, whole(1)), diagonal)
                start = Binary("max", lead, whole(0))
                end = Binary("min", plus(lead, columns), rows)
                return access, start, minus(end, start)
        return None

    def carried(self, inside: Inside, merged: tuple[Point, ...]) -> Stmt:
        """A loop over all coordinates, with iterators that are carried along."""
        name = self.names.new(inside.var)
        walkers = [
            _Walker(a, inside.steps[a], self.names, inside.var)
            for a in inside.steps
            if any(a in point for point in merged)
        ]
        tests: dict[Access, Expr] = {}
        flags, advances, runs = [], [], []
        bound = inside.bound
        for walker in walkers:
            k = Load(walker.counter, ())
            position = self.position(walker.access, walker.number, inside.bound, k)
            value = self.coordinate(walker.access, walker.number, inside.bound, position)
            end = self.count(walker.access, walker.number, inside.bound)
            left = self.left(walker, inside.bound, end)
            has = Select(left, Binary("eq", value, Var(name)), FALSE)
            flags.append((walker.flag, has))
            tests[walker.access] = Load(walker.flag, ())
            gain = Cast("int64", Load(walker.flag, ()))
            bound, step, run = self.step(walker, bound, inside.bound, Var(name), gain, end)
            advances.append(step)
            runs += [run] if run else []
        body = self.cases(inside, bound, Var(name), merged, tests)
        inner: Stmt = Block((*body, *advances))
        for run in reversed(runs):
            inner = run.around(inner)
        for flag, has in reversed(flags):
            inner = Allocate(_scalar(flag, "bool"), Block((Store(flag, (), has), inner)))
        loop: Stmt = For(name, self.program.extent(inside.var), inner)
        for walker in reversed(walkers):
            loop = _initialised(walker.counter, whole(0), loop)
        return loop

    def merging(self, inside: Inside, merged: tuple[Point, ...]) -> Stmt:
        """A loop for each point, while all its iterators have coordinates left."""
        walkers = {
            a: _Walker(a, inside.steps[a], self.names, inside.var)
            for a in inside.steps
            if any(a in point for point in merged)
        }
        ends = {a: self.names.new(f"{w.counter}_end") for a, w in walkers.items()}
        parts = []
        for point in merged:
            alive: Expr | None = None
            for access in walkers:
                if access in point:
                    left = self.left(walkers[access], inside.bound, Load(ends[access], ()))
                    alive = left if alive is None else Binary("and", alive, left)
            assert alive is not None
            below = tuple(p for p in merged if p <= point)
            mine = [(walkers[a], Load(ends[a], ())) for a in walkers if a in point]
            parts.append(While(alive, self.meeting(inside, below, mine)))
        out: Stmt = Block(tuple(parts))
        for access in reversed(walkers):
            count = self.count(access, inside.steps[access], inside.bound)
            out = _initialised(ends[access], count, out)
            out = _initialised(walkers[access].counter, whole(0), out)
        return out

    def left(self, walker: _Walker, outside: Bound, end: Expr) -> Expr:
        """Whether an iterator of a merge still stands at a coordinate."""
        k, access, number = Load(walker.counter, ()), walker.access, walker.number
        inside = Binary("lt", k, end)
        position = self.position(access, number, outside, k)
        kind, parent = self.program.level(access, number), outside.place(access).position
        there = kind.present(outside.site(access, number), parent, position)
        return inside if there is None else Select(inside, there, FALSE)

    def meeting(
        self, inside: Inside, below: tuple[Point, ...], walkers: Sequence[tuple[_Walker, Expr]]
    ) -> Stmt:
        """One step of a merge: the least coordinate, the case that holds, and on."""
        heads, tests, bound = [], {}, inside.bound
        for walker, _ in walkers:
            k = Load(walker.counter, ())
            position = self.position(walker.access, walker.number, inside.bound, k)
            value = self.coordinate(walker.access, walker.number, inside.bound, position)
            heads.append((self.names.new(f"{walker.counter}_at"), value))
        least: Expr = Load(heads[0][0], ())
        for head, _ in heads[1:]:
            least = Binary("min", least, Load(head, ()))
        if len(heads) > 1:
            name = self.names.new(inside.var)
            now: Expr = Load(name, ())
        else:
            now = least
        advances: list[Stmt] = []
        runs = []
        for (walker, end), (head, _) in zip(walkers, heads, strict=True):
            gain: Expr = whole(1)
            if len(heads) > 1:
                tests[walker.access] = Binary("eq", Load(head, ()), now)
                gain = Cast("int64", tests[walker.access])
            bound, step, run = self.step(walker, bound, inside.bound, now, gain, end)
            advances.append(step)
            runs += [run] if run else []
        cases = branch_free(self, inside, bound, now, below, tests)
        if cases is None:
            cases = self.cases(inside, bound, now, below, tests)
        body: Stmt = Block((*cases, *advances))
        for run in reversed(runs):
            body = run.around(body)
        if len(heads) > 1:
            body = _initialised(name, least, body)
        for head, value in reversed(heads):
            body = _initialised(head, value, body)
        return body

    def step(
        self, walker: _Walker, bound: Bound, outside: Bound, now: Expr, gain: Expr, end: Expr
    ) -> tuple[Bound, Stmt, _Run | None]:
        """An iterator's place at a coordinate, and how it goes on from there; where a level is not
        unique, by the run of positions that have the coordinate.
        """
        access, number = walker.access, walker.number
        k = Load(walker.counter, ())
        position = self.position(access, number, outside, k)
        if self.program.level(access, number).unique:
            moved = bound.with_place(access, Place(number + 1, position))
            return moved, Store(walker.counter, (), gain, "add"), None
        if number + 1 == len(self.program.format(access.tensor).levels):
            raise SparseError(
                f"{access.tensor}: expected elements of distinct coordinates where it is merged or "
                "stored, found a last level that is not unique"
            )
        name = self.names.new(f"{walker.counter}_run")
        stop = Load(name, ())
        here = self.coordinate(
            access, number, outside, self.position(access, number, outside, stop)
        )
        more = Select(Binary("lt", stop, end), Binary("eq", here, now), FALSE)
        if getattr(self.program.level(access, number), "slots", False):
            raise SparseError(
                f"{access.tensor}: expected positions of one coordinate next to one another where "
                f"it is merged or stored, found {self.program.level(access, number).text}"
            )
        until = plus(position, minus(stop, k))
        moved = bound.with_place(access, Place(number + 1, position, until))
        return moved, Store(walker.counter, (), stop), _Run(name, k, more)

    def cases(
        self,
        inside: Inside,
        bound: Bound,
        now: Expr,
        below: tuple[Point, ...],
        tests: dict[Access, Expr],
    ) -> list[Stmt]:
        """The statements for what may be there, of which exactly one runs."""
        out: list[Stmt] = []
        before: list[Expr] = []
        for point in below:
            condition: Expr | None = None
            for access in sorted(point - {FULL}, key=repr):
                if access in tests:
                    test = tests[access]
                    condition = test if condition is None else Binary("and", condition, test)
            body = self.at(inside, bound, now, point, merged=True)
            alone = condition
            for other in before:
                no = Unary("not", other)
                alone = no if alone is None else Binary("and", alone, no)
            out.append(body if alone is None else If(alone, body))
            if condition is None:
                break
            before.append(condition)
        return out

    def at(
        self, inside: Inside, bound: Bound, value: Expr, point: Point, merged: bool = False
    ) -> Stmt:
        """The body at a coordinate where just the iterators of a point are."""
        absent = {a for a in inside.steps if a not in point}
        # Of a product, what another operand steers and this one can locate.
        absent = {
            a for a in absent if not (self.program.level(a, inside.steps[a]).locates and point)
        }
        body = restricted(inside.body, absent)
        if body is None:
            return Block(())
        now = bound.with_coordinate(inside.var, value)
        target = inside.target
        now, search, scalars = self.located(inside, body, now, value, point)
        now, opening, after = self.assembly.entered(target, inside.var, now)
        now = now.located((*self.read(body), target))
        lowered = self.statement(body, now, pending=inside.pending, target=target)
        guard = now.guard(inside.var)
        out = Block((*opening, lowered, *after)) if opening or after else lowered
        if guard is not None:
            out = If(guard, out)
        out = Block((*search, out)) if search else out
        for scalar in scalars:
            out = Allocate(_scalar(scalar), out)
        return out

    def located(
        self, inside: Inside, body: Concrete, now: Bound, value: Expr, point: Point
    ) -> tuple[Bound, list[Stmt], list[str]]:
        """Accesses that are found at a coordinate to which others have led, with the statements
        that find them and their scalars.
        """
        search: list[Stmt] = []
        scalars: list[str] = []
        for access, number in inside.steps.items():
            if access in point or access not in self.read(body):
                continue
            kind, place = self.program.level(access, number), now.place(access)
            at = kind.locate(now.site(access, number), place.position, value)
            fresh = {old: self.names.new(old) for old in at.scalars}
            found = None if at.found is None else _renamed(at.found, fresh)
            now = now.with_place(
                access, Place(number + 1, _renamed(at.position, fresh), None, found)
            )
            search += [_renamed_in(each, fresh) for each in at.before]
            scalars += fresh.values()
        return now, search, scalars

    # ---- values

    def value(self, node: Expression, bound: Bound) -> Expr:
        """An expression over the elements at what is bound."""
        dtype = self.program.dtype
        match node:
            case Literal(number):
                return Const(float(number), dtype)
            case Access():
                return self.element(node, bound)
            case Neg(operand):
                return Unary("neg", self.value(operand, bound))
            case Add(left, right):
                return Binary("add", self.value(left, bound), self.value(right, bound))
            case Sub(left, right):
                return Binary("sub", self.value(left, bound), self.value(right, bound))
            case Mul(left, right):
                return Binary("mul", self.value(left, bound), self.value(right, bound))

    def element(self, access: Access, bound: Bound) -> Expr:
        """The value of an access."""
        tensor, indices = self.where_is(access, bound)
        found = bound.place(access).found
        value = Load(tensor, indices)
        return value if found is None else Select(found, value, Const(0.0, self.program.dtype))

    def where_is(self, access: Access, bound: Bound) -> tuple[str, tuple[Expr, ...]]:
        """The array of an access and its indices."""
        if self.program.is_plain(access.tensor):
            places = []
            for index in plain_indices(self.program, access):
                value = bound.index(index)
                if value is None:
                    raise SparseError(f"{access.tensor}: expected a loop over {index}, found none")
                places.append(value)
            return self.program.prefix(access.tensor), tuple(places)
        followed = sharer(self.program) if self.program.shares(access) else access
        place = bound.place(followed)
        levels = len(self.program.format(followed.tensor).levels)
        if place.depth != levels:
            missing = self.program.loop(followed, place.depth)
            raise SparseError(
                f"{access.tensor}: expected all {levels} levels followed, found none of {missing}"
            )
        return f"{self.program.prefix(access.tensor)}_vals", (place.position,)

    def store(self, target: Access, bound: Bound, value: Expr, reduce: str | None) -> Stmt:
        """A write of the target's element, or of a workspace's."""
        space = self.program.workspace(target.tensor)
        if space is not None and space.listed:
            return self.assembly.insert(space, self.where_is(target, bound)[1], value)
        tensor, indices = self.where_is(target, bound)
        return self.written(target, bound, Store(tensor, indices, value, reduce))

    def written(self, target: Access, bound: Bound, store: Store) -> Stmt:
        """A store where there is a place for it."""
        if self.program.shares(target):
            found = bound.place(sharer(self.program)).found
            return store if found is None else If(found, store)
        return self.assembly.value(store) if target == self.program.assignment.target else store

    def zero(self, target: Access, bound: Bound) -> list[Stmt]:
        """Zeros at all elements of the target under what is bound."""
        if (space := self.program.workspace(target.tensor)) and space.listed:
            return []
        loops: list[tuple[str, Expr]] = []
        guards: list[Expr] = []
        now = bound
        for index in target.indices:
            inner = self.program.loops(index)
            whole_mode = not any(loop in now.coordinates for loop in inner)
            if whole_mode and self.program.is_plain(target.tensor):
                inner = (index,)
            for loop in inner:
                if now.index(index) is not None or loop in now.coordinates:
                    continue
                name = self.names.new(f"{loop}z")
                extent = self.program.size(index) if loop == index else self.program.extent(loop)
                loops.append((name, extent))
                now = now.with_coordinate(loop, Var(name))
                if self.is_guarded(target, index) and (guard := now.guard(loop)):
                    guards.append(guard)
        now = now.located((target,))
        tensor, places = self.where_is(target, now)
        zero = Store(tensor, places, Const(0.0, self.program.dtype))
        out = self.written(target, now, zero)
        for guard in guards:
            out = If(guard, out)
        for name, extent in reversed(loops):
            out = For(name, extent, out)
        return [out]

    def is_guarded(self, target: Access, index: str) -> bool:
        """Whether another tensor stores an index of the target in blocks, the target does not: it
        has no place for what is beyond the mode.
        """
        if self.program.block(index) is None:
            return False
        if self.program.workspace(target.tensor):
            return True
        levels = self.program.format(target.tensor).levels
        outer = [d.mode for _, d in levels if isinstance(d, Outer)]
        return target.indices.index(index) not in outer

    def zero_values(self, target: Access) -> list[Stmt]:
        """Zeros at all values of a target that shares a structure."""
        name = self.names.new("z")
        zero = Const(0.0, self.program.dtype)
        store = Store(f"{self.program.prefix(target.tensor)}_vals", (Var(name),), zero)
        return [For(name, self.program.stored(sharer(self.program)), store)]


class Inside:
    """What the loops of one forall have in common."""

    def __init__(
        self,
        var: str,
        body: Concrete,
        steps: dict[Access, int],
        bound: Bound,
        pending: bool,
        target: Access,
    ) -> None:
        self.var, self.body, self.steps = var, body, steps
        self.bound, self.pending, self.target = bound, pending, target


class _Walker:
    """An iterator of a merge: its counter, and the flag that says whether it is at a coordinate."""

    def __init__(self, access: Access, number: int, names: Minted, var: str) -> None:
        self.access, self.number = access, number
        self.counter = names.new(f"{var}{access.tensor}")
        self.flag = names.new(f"{self.counter}_here")


@dataclass(frozen=True, slots=True)
class _Run:
    """A scalar that goes on from a position as long as the coordinate stays the same."""

    name: str
    start: Expr
    more: Expr

    def around(self, body: Stmt) -> Stmt:
        """The scalar found, then the body."""
        step = Store(self.name, (), whole(1), "add")
        return _initialised(self.name, self.start, Block((While(self.more, step), body)))


def _renamed(node: Expr, names: Mapping[str, str]) -> Expr:
    """An expression with other names of scalars."""

    def change(part: Expr) -> Expr:
        if isinstance(part, Load) and part.tensor in names:
            return Load(names[part.tensor], part.indices)
        return part

    return map_expression(node, change)


def _renamed_in(node: Stmt, names: Mapping[str, str]) -> Stmt:
    """A statement with other names of scalars."""

    def change(part: Stmt) -> Stmt:
        if isinstance(part, Store) and part.tensor in names:
            return replace(part, tensor=names[part.tensor])
        return part

    return map_statements(node, lambda e: _renamed(e, names), change)


def _scalar(name: str, dtype: str = "int64") -> Tensor:
    return Tensor(name, (), dtype, "temporary", "register")


def _initialised(name: str, value: Expr, body: Stmt) -> Stmt:
    """A whole-number scalar that starts as a value, around the body."""
    return Allocate(_scalar(name), Block((Store(name, (), value), body)))
