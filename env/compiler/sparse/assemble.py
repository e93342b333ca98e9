"""How a sparse target comes to be: coordinates are appended behind a running position of each
level, and the position at which a parent's coordinates end is written when its loop is over (Chou
et al., OOPSLA 2018, section 4.3: append_coord, append_edges).

What is appended comes in the order of the loops and only once. So a loop that is summed over may
not be outside a loop that is appended at (what it comes back to could only be appended again: this
is where TACO writes past its arrays), unless a workspace gathers the sum first.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    Select,
    Stmt,
    Store,
    Var,
)
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.levels.base import Level, minus, one_after, plus, times
from kernelwright.env.compiler.sparse.minted import Minted, scalar
from kernelwright.env.compiler.sparse.notation import Access, access_text
from kernelwright.env.compiler.sparse.program import Program, SparseError


class Assembly:
    """The target's levels while they are written."""

    def __init__(self, program: Program, names: Minted) -> None:
        self.program, self.names = program, names
        self.target = program.assignment.target
        self.is_appended = not program.is_plain(self.target.tensor) and not program.shares(
            self.target
        )
        self._skips_parents = False
        self._starts: list[str] = []
        self._counters: dict[int, str] = {}
        if self.is_appended:
            for number, kind in enumerate(self._kinds):
                if not kind.full and not kind.appends:
                    raise SparseError(
                        f"{self.target.tensor}: expected a target of dense, compressed and "
                        f"singleton levels, found {kind.text}; convert the result"
                    )
                if not kind.full and not kind.branchless:
                    self._counters[number] = names.new(f"{self.target.tensor}{number + 1}_next")

    @property
    def _kinds(self) -> list[Level]:
        return [kind for kind, _ in self.program.format(self.target.tensor).levels]

    # ---- questions

    def level_at(self, var: str) -> int:
        """The level (from 0) of the target at a loop variable, -1 if there is none."""
        for number in range(len(self._kinds)):
            if self.program.loop(self.target, number) == var:
                return number
        return -1

    def appends(self, target: Access, var: str) -> bool:
        """Whether the target's coordinates are appended at a variable."""
        if not self.is_appended or target != self.target:
            return False
        number = self.level_at(var)
        return number >= 0 and not self._kinds[number].full

    def appends_below(self, target: Access, bound: Bound) -> bool:
        """Whether levels that are appended to are still to come."""
        if not self.is_appended or target != self.target:
            return False
        depth = bound.place(target).depth
        return any(not kind.full for kind in self._kinds[depth:])

    def check(self, target: Access, var: str, bound: Bound, *, is_kept: bool) -> None:
        """Refuse a summed loop outside one that is appended at.

        Raises:
            SparseError: with the loops.
        """
        if is_kept or not self.appends_below(target, bound):
            return
        inner = self._next_appended(bound)
        raise SparseError(
            f"{access_text(target)} is assembled by appending at {inner}, but {var}, which is "
            f"summed over, is outside of it: what comes again for another {var} could only be "
            f"appended again; put {var} inside {inner}, or gather the sum in a workspace over "
            f"{inner} (workspace('{inner}'))"
        )

    def check_ascending(self, target: Access, var: str, steps: Mapping[Access, int]) -> None:
        """Refuse coordinates that do not ascend where they are appended.

        Raises:
            SparseError: with the level that they come from.
        """
        if not self.is_appended or target != self.target or (at := self.level_at(var)) < 0:
            return
        # Below a dense level, the ends of what its coordinates hold ascend, too.
        inner = [n for n in range(at, len(self._kinds)) if not self._kinds[n].full]
        if not inner or not (self._kinds[at].full or self._kinds[at].ordered):
            return
        for access, number in steps.items():
            kind = self.program.level(access, number)
            if not kind.ordered:
                where = self.program.loop(target, inner[0])
                helps = f"convert {access.tensor}"
                if where == var:
                    helps += f", or gather in a workspace over {var} (workspace('{var}'))"
                raise SparseError(
                    f"{access_text(target)} is assembled by appending at {where} in order, but "
                    f"{access.tensor} has an unordered level at {var} ({kind.text}); {helps}"
                )

    def check_sequence(self, target: Access, bound: Bound) -> None:
        """Refuse several statements that would append the same coordinates one after the other.

        Raises:
            SparseError: with the loop.
        """
        if self.appends_below(target, bound):
            inner = self._next_appended(bound)
            raise SparseError(
                f"{access_text(target)} is assembled by appending at {inner}, but its terms are "
                "summed over different variables and computed one after the other; gather them in "
                f"a workspace over {inner} (workspace('{inner}'))"
            )

    def _next_appended(self, bound: Bound) -> str:
        depth = bound.place(self.target).depth
        number = next(n for n in range(depth, len(self._kinds)) if not self._kinds[n].full)
        return self.program.loop(self.target, number)

    def leaves_out(self, target: Access) -> None:
        """Take note that not all parents are visited: their ends are filled in afterwards."""
        if self.is_appended and target == self.target:
            self._skips_parents = True

    # ---- code

    def entered(
        self, target: Access, var: str, bound: Bound
    ) -> tuple[Bound, list[Stmt], list[Stmt]]:
        """What is known inside an appended loop at a coordinate, and what is written before and
        after its body.
        """
        if not self.appends(target, var):
            return bound, [], []
        number = self.level_at(var)
        chain = self._chain(number)
        counter = self._counters[chain[0]]
        place = Load(counter, ())
        bound = bound.with_place(target, Place(number + 1, place))
        if not self._kinds[number].unique and number + 1 < len(self._kinds):
            # Written with the last coordinate of the element.
            return bound, [], []
        after: list[Stmt] = []
        for level in chain:
            site = self.program.site(target, level)
            value = Cast(site.index_dtype, bound.coordinates[self.program.loop(target, level)])
            after.append(self._written(number, site.name("crd"), place, value))
        after.append(Store(counter, (), whole(1), "add"))
        inner = next((n for n in self._counters if n > number), None)
        if inner is None:
            return bound, [], after
        if not self._between(inner):
            below = self.program.site(target, inner)
            end = Cast(below.index_dtype, Load(self._counters[inner], ()))
            after.insert(0, self._written(number, below.name("pos"), one_after(place), end))
        # A coordinate under which nothing was appended is not kept.
        start = self.names.new(f"{self._counters[inner]}_before")
        grown = Binary("lt", Load(start, ()), Load(self._counters[inner], ()))
        opening = Store(start, (), Load(self._counters[inner], ()))
        self._starts.append(start)
        return bound, [opening], [If(grown, Block(tuple(after)))]

    def value(self, store: Store) -> Stmt:
        """The write of a value of the target, as far as it is written."""
        number = max(self._counters, default=-1)
        if not self.is_appended or number < 0 or self.program.assembly == "exact":
            return store
        if self.program.assembly in ("counts", "assemble"):
            return Block(())
        return If(self._has_room(number), store)

    def _written(self, number: int, array: str, place: Expr, value: Expr) -> Stmt:
        """A write to an array of levels while level ``number`` is appended to, as far as there is
        room and it is written; where the levels are there already, a comparison with them.
        """
        store = Store(array, (place,), value)
        match self.program.assembly:
            case "counts":
                return Block(())
            case "guarded":
                return If(self._has_room(number), store)
            case "compute":
                differs = Binary("ne", Load(array, (place,)), value)
                return If(Select(self._has_room(number), differs, TRUE), self._count_wrong())
        return store

    def _has_room(self, number: int) -> Expr:
        """Whether the running position of a level is within its arrays."""
        chain = self._chain(number)[0]
        room = self.program.site(self.target, chain).positions
        return Binary("lt", Load(self._counters[chain], ()), room)

    def _count_wrong(self) -> Stmt:
        return Store(f"{self.target.tensor}_wrong", (whole(0),), whole(1), "add")

    def _chain(self, number: int) -> list[int]:
        """The levels from one with a position of its own down to a level."""
        first = number
        while self._kinds[first].branchless:
            first -= 1
        return list(range(first, number + 1))

    def closing(self, target: Access, var: str, bound: Bound) -> list[Stmt]:
        """The end of a parent's coordinates, once its loop is over."""
        number = self.level_at(var)
        if number not in self._counters or self.program.assembly == "counts":
            return []
        compares = self.program.assembly == "compute"
        site = self.program.site(target, number)
        parent = bound.place(target).position
        end = Cast(site.index_dtype, Load(self._counters[number], ()))
        store = Store(site.name("pos"), (one_after(parent),), end)
        if compares:
            differs = Binary("ne", Load(store.tensor, store.indices), end)
            checked: Stmt = If(differs, self._count_wrong())
        else:
            checked = store
        above = max((n for n in self._counters if n < number), default=None)
        if above is None:
            return [checked]
        if not self._between(number):
            return []  # written where the parent is appended
        # What is above has not been appended yet, and may never be: behind the last one is no room.
        room = self.program.site(target, above).positions
        return [If(Binary("lt", Load(self._counters[above], ()), room), checked)]

    def _between(self, number: int) -> list[int]:
        """The dense levels between a level that is appended to and the one above it."""
        first = number
        while first and self._kinds[first - 1].full:
            first -= 1
        return list(range(first, number)) if first else []

    def around(self, body: Stmt) -> Stmt:
        """Counters, first positions, and the workspaces that keep lists."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        assembly = self.program.assembly
        if assembly in ("exact", "guarded", "assemble"):
            for number in self._counters:
                first, last = self._ends(number)
                before += first
                after += last
            after += self._rest()
        if assembly in ("exact", "guarded", "compute"):
            after += self._rest_of_values()
        if self.is_appended and assembly in ("guarded", "counts"):
            after += self._told()
        if self.is_appended and assembly == "compute":
            before.append(Store(f"{self.target.tensor}_wrong", (whole(0),), whole(0)))
        out: Stmt = Block((*before, body, *after)) if before or after else body
        for name in self._starts:
            out = Allocate(scalar(name), out)
        for counter in self._counters.values():
            out = Allocate(scalar(counter), Block((Store(counter, (), whole(0)), out)))
        return out

    def _ends(self, number: int) -> tuple[list[Stmt], list[Stmt]]:
        """The first of a level's positions before all, and those of parents that were left out
        after all: nothing is below them.
        """
        site = self.program.site(self.target, number)
        pos, zero = site.name("pos"), Const(0, site.index_dtype)
        if not self._skips_parents:
            return [Store(pos, (whole(0),), zero)], []
        p, q = self.names.new("p"), self.names.new("p")
        clear = For(p, one_after(site.parents), Store(pos, (Var(p),), zero))
        last = Load(pos, (Var(q),))
        scan = For(q, site.parents, Store(pos, (one_after(Var(q)),), last, "max"))
        return [clear], [scan]

    def _rest(self) -> list[Stmt]:
        """What lies behind the last position: zeros, and no coordinates below."""
        out: list[Stmt] = []
        for number in self._counters:
            site = self.program.site(self.target, number)
            used: Expr = Load(self._counters[number], ())
            left = minus(site.positions, used)
            for level in self._chain_below(number):
                at = self.program.site(self.target, level)
                zero = Const(0, at.index_dtype)
                out.append(self._filled(at.name("crd"), used, left, zero))
            below = min((n for n in self._counters if n > number), default=None)
            if below is not None:
                at = self.program.site(self.target, below)
                end = Cast(at.index_dtype, Load(self._counters[below], ()))
                each: Expr = whole(1)
                for level in self._between(below):
                    each = times(each, self.program.site(self.target, level).extent)
                first = one_after(times(used, each))
                out.append(self._filled(at.name("pos"), first, times(left, each), end))
        return out

    def _rest_of_values(self) -> list[Stmt]:
        """Zeros behind the last value."""
        if not self._counters:
            return []
        number = max(self._counters)
        block: Expr = whole(1)
        for level in range(number + 1, len(self._kinds)):
            if self._kinds[level].full:
                block = times(block, self.program.site(self.target, level).extent)
        used = times(Load(self._counters[number], ()), block)
        left = minus(self.program.stored(self.target), used)
        values = f"{self.program.prefix(self.target.tensor)}_vals"
        return [self._filled(values, used, left, Const(0.0, self.program.dtype))]

    def _filled(self, array: str, start: Expr, count: Expr, value: Expr) -> Stmt:
        name = self.names.new("r")
        return For(name, count, Store(array, (plus(start, Var(name)),), value))

    def _told(self) -> list[Stmt]:
        """How many positions each level needs; 0 for those that store none of their own."""
        out: list[Stmt] = []
        for number in range(len(self._kinds)):
            counter = self._counters.get(number)
            value: Expr = whole(0) if counter is None else Load(counter, ())
            out.append(Store(f"{self.target.tensor}_counts", (whole(number),), value))
        return out

    def _chain_below(self, number: int) -> list[int]:
        """A level with a position of its own and the branchless ones below it."""
        last = number
        while last + 1 < len(self._kinds) and self._kinds[last + 1].branchless:
            last += 1
        return list(range(number, last + 1))
