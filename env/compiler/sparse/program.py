"""What the lowering reads: an assignment, a format for each tensor, the sizes of index variables,
and the concrete statement that says in which order coordinates are visited.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Binary, Expr, Tensor, Var
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.concrete import Concrete
from kernelwright.env.compiler.sparse.format import (
    Diagonal,
    Dimension,
    Format,
    Inner,
    Mode,
    Outer,
)
from kernelwright.env.compiler.sparse.levels.base import Level, Site, minus, plus
from kernelwright.env.compiler.sparse.notation import Access, Assignment, accesses
from kernelwright.env.types import Directive


class SparseError(CompilerError):
    """A statement that cannot be lowered as it is: why, and what would help."""


DTYPES = ("float32", "float64")
# What becomes of a sparse target. Levels and values are written to arrays that are large enough
# (exact); nothing is written beyond them, and how much was needed is told (guarded); that is told
# and nothing else (counts); levels are written and no values (assemble); values are written to
# levels that are there, and where these are other ones is told (compute).
ASSEMBLIES = ("exact", "guarded", "counts", "assemble", "compute")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A dense temporary over index variables; ``listed``, it remembers which of its elements are
    in use, so that a sparse result can be assembled from it.
    """

    name: str
    indices: tuple[str, ...]
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A statement with all that is needed to make loops of it.

    ``sizes`` are those of index variables, ``counts`` the numbers of positions of levels whose
    storage decides them (``A2``), both whole-number expressions over ``extents``. ``structure``
    names the operand whose levels the target shares: only values are written then. ``assembly`` is
    how a sparse target comes to be, one of `ASSEMBLIES`. ``balanced`` is a tensor whose stored
    elements are cut into a number of parts of equal length, ``blocks_of`` are loops that are
    visited in blocks of so many coordinates.

    A tensor among ``choices`` is there in several formats: its arrays have the prefix that its
    format has there in place of its name (``A_csr2_crd``), and so have its ``counts``
    (``A_csr2``), those of all its formats. ``interface`` is the arguments in another order than
    that of appearance, or with others besides, such as the copies that are not read.
    """

    name: str
    assignment: Assignment
    formats: tuple[tuple[str, Format], ...]
    sizes: tuple[tuple[str, Expr], ...]
    counts: tuple[tuple[str, Expr], ...]
    extents: tuple[str, ...]
    dtype: str
    concrete: Concrete
    workspaces: tuple[Workspace, ...] = ()
    structure: str | None = None
    assembly: str = "exact"
    balanced: tuple[str, int] | None = None
    blocks_of: tuple[tuple[str, int], ...] = ()
    choices: tuple[tuple[str, tuple[tuple[Format, str], ...]], ...] = ()
    interface: tuple[Tensor, ...] | None = None

    @property
    def key(self) -> str:
        """A text that no other program has."""
        return repr(self)

    def proposals(self) -> tuple[Directive, ...]:
        """The directives on the statement that one may try next."""
        # What proposes lowers, and what lowers knows programs.
        from kernelwright.env.compiler.sparse.proposals import proposals

        return proposals(self)

    def prefix(self, tensor: str) -> str:
        """What the arrays of a tensor in its format are named after."""
        offered = dict(dict(self.choices).get(tensor, ()))
        return offered.get(self.format(tensor), tensor) if offered else tensor

    def format(self, tensor: str) -> Format:
        """The format of an operand or of the target."""
        return dict(self.formats)[tensor]

    def size(self, variable: str) -> Expr:
        """The number of coordinates of an index variable."""
        return dict(self.sizes)[variable]

    def workspace(self, name: str) -> Workspace | None:
        """The workspace of a name, or None if the name is no workspace's."""
        return next((each for each in self.workspaces if each.name == name), None)

    def is_plain(self, tensor: str) -> bool:
        """Whether a tensor is an ordinary array, stored by its modes in some order."""
        if self.workspace(tensor):
            return True
        levels = self.format(tensor).levels
        return all(kind.full and isinstance(dimension, Mode) for kind, dimension in levels)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The target and all operands, each once."""
        found = (self.assignment.target, *accesses(self.assignment.expression))
        return tuple(dict.fromkeys(found))

    def block(self, variable: str) -> int | None:
        """The block size by which an index variable is stored, or None.

        Raises:
            SparseError: if two tensors have different ones.
        """
        found: dict[int, str] = {}
        for access in self.accesses:
            for _, dimension in self.format(access.tensor).levels:
                if isinstance(dimension, Outer) and access.indices[dimension.mode] == variable:
                    found.setdefault(dimension.size, access.tensor)
        if len(found) > 1:
            listed = " and ".join(f"{size} ({name})" for size, name in sorted(found.items()))
            raise SparseError(f"{variable}: expected blocks of one size, found {listed}")
        return next(iter(found), None)

    def loops(self, variable: str) -> tuple[str, ...]:
        """The loop variables of an index variable: itself, or those of its blocks and within."""
        return (f"{variable}o", f"{variable}i") if self.block(variable) else (variable,)

    def loop(self, access: Access, number: int) -> str:
        """The loop variable of a level (from 0) of an access."""
        match self.format(access.tensor).levels[number][1]:
            case Mode(mode):
                return access.indices[mode]
            case Outer(mode, _):
                return f"{access.indices[mode]}o"
            case Inner(mode, _):
                return f"{access.indices[mode]}i"
            case Diagonal():
                return self._diagonal(access)

    def _diagonal(self, access: Access) -> str:
        """The loop over the diagonals of an access: each access of a tensor has its own, a target
        that shares a structure that of its owner.
        """
        own = access
        if self.shares(access):
            own = Access(str(self.structure), access.indices)
        found = [each for each in self.accesses if each.tensor == own.tensor]
        number = found.index(own) + 1 if own in found else 1
        return f"{own.tensor}_diagonal{number if number > 1 else ''}"

    def access_loops(self, access: Access) -> tuple[str, ...]:
        """The loop variables that an access is visited by."""
        out = [loop for index in access.indices for loop in self.loops(index)]
        if self.workspace(access.tensor):
            return tuple(out)
        for number in range(len(self.format(access.tensor).levels)):
            loop = self.loop(access, number)
            if loop not in access.indices:
                out.append(loop)
        return tuple(dict.fromkeys(out))

    def extent(self, variable: str) -> Expr:
        """The number of coordinates of a loop variable."""
        for access in self.accesses:
            for number, (_, dimension) in enumerate(self.format(access.tensor).levels):
                if self.loop(access, number) == variable:
                    return self.coordinates(access, dimension)
        return self.size(variable)

    def coordinates(self, access: Access, dimension: Dimension) -> Expr:
        """The number of coordinates of a dimension of an access."""
        match dimension:
            case Mode(mode):
                return self.size(access.indices[mode])
            case Outer(mode, block):
                raised = plus(self.size(access.indices[mode]), whole(block - 1))
                return simplify(Binary("floordiv", raised, whole(block)))
            case Inner(_, block):
                return whole(block)
            case Diagonal(row, column):
                both = plus(self.size(access.indices[row]), self.size(access.indices[column]))
                return simplify(minus(both, whole(1)))

    def site(self, access: Access, number: int, computed: Expr | None = None) -> Site:
        """A level (from 0) of an access as its kind's code needs it."""
        tensor = access.tensor if not self.shares(access) else str(self.structure)
        owner = self.format(tensor)
        parents: Expr = whole(1)
        for below, (kind, dimension) in enumerate(owner.levels):
            extent = self.coordinates(access, dimension)
            prefix = self.prefix(tensor)
            stored = dict(self.counts).get(f"{prefix}{below + 1}", whole(0))
            site = Site(prefix, below + 1, extent, parents, stored, owner.index_dtype, computed)
            if below == number:
                return site
            parents = simplify(kind.positions(site) or stored)
        raise SparseError(f"{tensor}: expected a level from 0 to {len(owner.levels) - 1}")

    def shares(self, access: Access) -> bool:
        """Whether an access is the target with the structure of an operand."""
        return self.structure is not None and access == self.assignment.target

    def level(self, access: Access, number: int) -> Level:
        """The kind of a level (from 0) of an access."""
        return self.format(access.tensor).levels[number][0]

    def stored(self, access: Access) -> Expr:
        """The number of values of an access's tensor."""
        last = len(self.format(access.tensor).levels) - 1
        if last < 0:
            return whole(1)
        site = self.site(access, last)
        return simplify(self.level(access, last).positions(site) or site.positions)

    def arguments(self) -> tuple[Tensor, ...]:
        """The arrays of all operands and of the target, in order of appearance, target last."""
        out: list[Tensor] = []
        for access in (*self.accesses[1:], self.accesses[0]):
            new = self.arrays(access)
            out += [each for each in new if each.name not in {known.name for known in out}]
        return tuple(out)

    def arrays(self, access: Access) -> list[Tensor]:
        """The arrays of one access."""
        is_target = access == self.assignment.target
        role = "output" if is_target else "input"
        if self.is_plain(access.tensor):
            shape = tuple(self.size(index) for index in plain_indices(self, access))
            new = [Tensor(self.prefix(access.tensor), shape, self.dtype, role)]
        else:
            is_made = is_target and not self.shares(access)
            assembly = self.assembly if is_made else "exact"
            levels = "input" if assembly == "compute" else role
            new = [] if self.shares(access) else self._arrays(access, levels)
            name = f"{self.prefix(access.tensor)}_vals"
            values = Tensor(name, (self.stored(access),), self.dtype, role)
            count = whole(len(self.format(access.tensor).levels))
            counts = Tensor(f"{access.tensor}_counts", (count,), "int64", role)
            wrong = Tensor(f"{access.tensor}_wrong", (whole(1),), "int64", role)
            new = {
                "exact": [*new, values],
                "guarded": [*new, values, counts],
                "counts": [counts],
                "assemble": new,
                "compute": [*new, values, wrong],
            }[assembly]
        return new

    def _arrays(self, access: Access, role: str) -> list[Tensor]:
        out = []
        for number in range(len(self.format(access.tensor).levels)):
            site = self.site(access, number)
            for array in self.level(access, number).arrays(site):
                shape = (simplify(array.size),)
                facts = ("ascending",) if array.ascending and role == "input" else ()
                name = site.name(array.name)
                out.append(Tensor(name, shape, array.dtype, role, facts=facts))
        return out


def plain_indices(program: Program, access: Access) -> tuple[str, ...]:
    """The index variables of an access to an ordinary array, in the order of its storage."""
    if program.workspace(access.tensor):
        return access.indices
    levels = program.format(access.tensor).levels
    modes = [dimension.mode for _, dimension in levels if isinstance(dimension, Mode)]
    return tuple(access.indices[mode] for mode in modes)


def symbolic(level: str) -> Var:
    """The extent that stands for the number of positions of a level (``A2``)."""
    return Var(f"{level}_size")
