"""Workspaces that keep a list of what is in use: a sparse result is gathered in one and then read
in order (Gustavson, Two Fast Algorithms for Sparse Matrices, TOMS 1978; Kjolstad et al., CGO 2019,
section 5).
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Tensor,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import FALSE, whole
from kernelwright.env.compiler.sparse.levels.base import minus, plus
from kernelwright.env.compiler.sparse.minted import Minted, scalar, with_tensor
from kernelwright.env.compiler.sparse.program import Program, Workspace


class Workspaces:
    """The workspaces of one program and the arrays of those that keep a list."""

    def __init__(self, program: Program, names: Minted) -> None:
        self._program, self._names = program, names
        self._found: dict[str, _Names] = {}
        self._made: set[str] = set()
        for space in program.workspaces:
            names.new(space.name)
            if space.listed:
                parts = (f"{space.name}_{part}" for part in ("used", "list", "count"))
                self._found[space.name] = _Names(*map(names.new, parts))

    def around(self, body: Stmt) -> Stmt:
        """The lists, empty, around all."""
        for space in self._program.workspaces:
            if space.listed:
                body = self._with_list(space, body)
        return body

    def both(self, space: Workspace, producer: Stmt, consumer: Stmt) -> Stmt:
        """Both statements around a workspace."""
        if not space.listed:
            shape = tuple(self._program.size(index) for index in space.indices)
            made: Stmt = Block((producer, consumer))
            name = space.name
            # The cases of a merge have one each.
            if name in self._made:
                name = self._names.new(name)
                made = with_tensor(made, space.name, name)
            self._made.add(name)
            return Allocate(Tensor(name, shape, self._program.dtype), made)
        names = self._found[space.name]
        reset = Store(names.count, (), whole(0))
        return Block((reset, producer, self._sorted(space), consumer))

    def _with_list(self, space: Workspace, body: Stmt) -> Stmt:
        names = self._found[space.name]
        size = self._program.size(space.indices[0])
        k = self._names.new("u")
        clear = For(k, size, Store(names.used, (Var(k),), Const(False, "bool")))
        out: Stmt = Block((clear, body))
        out = Allocate(scalar(names.count), out)
        out = Allocate(Tensor(names.list, (size,), "int64", "temporary", "heap"), out)
        out = Allocate(Tensor(names.used, (size,), "bool", "temporary", "heap"), out)
        dtype = self._program.dtype
        return Allocate(Tensor(space.name, (size,), dtype, "temporary", "heap"), out)

    def insert(self, space: Workspace, indices: tuple[Expr, ...], value: Expr) -> Stmt:
        """Add a value to an element, which is put on the list when it is first met."""
        names = self._found[space.name]
        count = Load(names.count, ())
        first = Block(
            (
                Store(names.used, indices, Const(True, "bool")),
                Store(names.list, (count,), indices[0]),
                Store(names.count, (), whole(1), "add"),
                Store(space.name, indices, Const(0.0, self._program.dtype)),
            )
        )
        is_new = Binary("eq", Load(names.used, indices), FALSE)
        return Block((If(is_new, first), Store(space.name, indices, value, "add")))

    def count(self, space: Workspace) -> Expr:
        """How many elements are in use."""
        return Load(self._found[space.name].count, ())

    def coordinate(self, space: Workspace, k: Expr) -> Expr:
        """The k-th coordinate in use."""
        return Load(self._found[space.name].list, (k,))

    def cleared(self, space: Workspace, coordinate: Expr) -> Stmt:
        """An element goes out of use."""
        return Store(self._found[space.name].used, (coordinate,), Const(False, "bool"))

    def _sorted(self, space: Workspace) -> Stmt:
        """The list in order: by a walk through all coordinates where many are in use, else by
        Shell's sort (with gaps that are halved).
        """
        names = self._found[space.name]
        size = self._program.size(space.indices[0])
        count = Load(names.count, ())
        is_crowded = Binary("lt", size, Binary("mul", count, whole(16)))
        j, new = self._names.new("u"), self._names.new
        keep = Block(
            (
                Store(names.list, (count,), Var(j)),
                Store(names.count, (), whole(1), "add"),
            )
        )
        walk = For(j, size, If(Load(names.used, (Var(j),)), keep))
        rebuilt = Block((Store(names.count, (), whole(0)), walk))
        gap, at, back, moving = new("gap"), new("at"), new("back"), new("moving")
        g, b, m = Load(gap, ()), Load(back, ()), Load(moving, ())
        before = minus(b, g)
        greater = Binary("lt", m, Load(names.list, (before,)))
        shift = Block(
            (
                Store(names.list, (b,), Load(names.list, (before,))),
                Store(back, (), before),
            )
        )
        insert = Block(
            (
                Store(moving, (), Load(names.list, (plus(g, Var(at)),))),
                Store(back, (), plus(g, Var(at))),
                While(Select(Binary("le", g, b), greater, FALSE), shift),
                Store(names.list, (b,), m),
            )
        )
        halve = Store(gap, (), Binary("floordiv", g, whole(2)))
        passes = While(Binary("lt", whole(0), g), Block((For(at, minus(count, g), insert), halve)))
        start = Store(gap, (), Binary("floordiv", count, whole(2)))
        sort: Stmt = Block((start, passes))
        for name in (gap, back, moving):
            sort = Allocate(scalar(name), sort)
        crowded = self._names.new(f"{space.name}_crowded")
        flag = Load(crowded, ())
        both = Block(
            (
                Store(crowded, (), is_crowded),
                If(flag, rebuilt),
                If(Binary("eq", flag, FALSE), sort),
            )
        )
        return Allocate(scalar(crowded, "bool"), both)


class _Names:
    """The arrays of a workspace that keeps a list."""

    def __init__(self, used: str, listed: str, count: str) -> None:
        self.used, self.list, self.count = used, listed, count
