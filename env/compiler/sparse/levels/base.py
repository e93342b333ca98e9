"""What a level of a sparse tensor is: how coordinates of one dimension are stored below each
position of the level above (Chou, Kjolstad and Amarasinghe, Format Abstraction for Sparse Tensor
Algebra Compilers, OOPSLA 2018).

A tensor is stored as a tree, a level a dimension: a path from the root is a stored element, and
every level numbers its nodes by *positions* 0, 1, …; those of the last level are the places of the
values. The root is position 0 of one. A level kind says in its *properties* what holds of the
coordinates below one parent position, and by its *capabilities* what can be done with them:

    full        every coordinate is there
    ordered     coordinates ascend
    unique      no coordinate comes twice
    branchless  every parent has exactly one child
    compact     no position without a coordinate lies between others

    iterates    by "value" (all coordinates of a range, each then located) or by "position"
    locates     from a coordinate to its position without a search through all
    appends     a coordinate after all that were stored before
    inserts     a coordinate at any time

    fills       a position can be one that no element was put in, yet looks like one (a zero)
    computed    the coordinate follows from those of levels above
    relaxes     it may be told not to keep coordinates in order, or distinct

A new kind is one class in one file and a row in `LEVELS`: it emits LoopIR for the traversal (in the
first half of its methods) and packs, lists and checks NumPy arrays (in the second half).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Stmt,
    Var,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import EMPTY, whole

Whole: TypeAlias = NDArray[np.int64]
Arrays: TypeAlias = Mapping[str, NDArray[np.generic]]


class StorageError(CompilerError):
    """Arrays that are no tensor of their format: which level, which array and where."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a level: its name within the level, its number of elements, its dtype, and
    whether its elements never descend.
    """

    name: str
    size: Expr
    dtype: str
    ascending: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """A level in one tensor, as code needs it: names, and how many coordinates and parent positions
    there are.

    ``number`` counts levels from 1. ``extent`` is the number of coordinates of its dimension,
    ``parents`` the number of positions of the level above, ``positions`` its own number where its
    storage decides that (see `Level.positions`). ``computed`` is the coordinate that levels above
    decide, for a level that stores none (`Format.addends` says which levels).
    """

    tensor: str
    number: int
    extent: Expr
    parents: Expr
    positions: Expr
    index_dtype: str
    computed: Expr | None = None

    def name(self, array: str) -> str:
        """The name of an array in code: ``A2_crd``."""
        return f"{self.tensor}{self.number}_{array}"

    def load(self, array: str, place: Expr) -> Expr:
        """An element of an array of the level, as int64."""
        return Cast("int64", Load(self.name(array), (place,)))


@dataclass(frozen=True, slots=True)
class Located:
    """Where a coordinate is: its position, and the condition under which it is there (None:
    always); ``before`` are statements that find it, over int64 temporaries without indices named in
    ``scalars``.
    """

    position: Expr
    found: Expr | None = None
    before: tuple[Stmt, ...] = ()
    scalars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Packed:
    """Arrays of a level, the position of every element in it, and the number of positions."""

    arrays: dict[str, NDArray[np.generic]]
    places: Whole
    positions: int


@dataclass(frozen=True, slots=True)
class Listed:
    """All stored nodes of a level: the parent's index in the list of the level above, the position
    and the coordinate of each.
    """

    parents: Whole
    positions: Whole
    coordinates: Whole


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of elements before their level is assembled: how many there are, how many
    coordinates they have below their parents (nodes), below how many parents there are any, the
    greatest number below one and the first parent that has it.
    """

    elements: int
    nodes: int
    occupied: int
    fullest: int
    at: int


@dataclass(frozen=True, slots=True)
class Elements:
    """Sorted elements as code sees them while their level is assembled, in expressions over the
    variable ``e``: parent position, coordinate, and which node of the level (counted over all
    parents) the element is at. ``lengths`` names the array of the numbers of nodes below each
    parent. ``listed``: every element is a node of its own, and the array of their coordinates can
    be the level's ``crd``.
    """

    count: Expr
    parent: Expr
    coordinate: Expr
    node: Expr
    lengths: str
    listed: bool

    def starts(self, element: str) -> Expr:
        """Whether an element is the first of its node."""
        before: dict[str, Expr] = {"e": minus(Var(element), whole(1))}
        mine = substitute(self.node, {"e": Var(element)})
        differs = Binary("ne", mine, substitute(self.node, before))
        return Select(Binary("eq", Var(element), whole(0)), Const(True, "bool"), differs)


@dataclass(frozen=True, slots=True)
class Inserted:
    """The statements that write a level's arrays, and the position of each element over the
    variable ``e``; with ``places`` they write the positions to the array of this name. A ``crd``
    that they do not write is the array of the elements' coordinates.
    """

    position: Expr
    body: Stmt = EMPTY
    places: str | None = None


@dataclass(frozen=True, slots=True)
class Level(ABC):
    """A kind of level with its parameters."""

    name: ClassVar[str]
    full: ClassVar[bool] = False
    branchless: ClassVar[bool] = False
    compact: ClassVar[bool] = True
    iterates: ClassVar[str] = "position"
    locates: ClassVar[bool] = False
    appends: ClassVar[bool] = False
    inserts: ClassVar[bool] = False
    fills: ClassVar[bool] = False
    computed: ClassVar[bool] = False
    relaxes: ClassVar[bool] = False
    ordered: bool = True
    unique: bool = True

    def __post_init__(self) -> None:
        """Only kinds that can do without order and distinct coordinates may be told to.

        Raises:
            StorageError: if another kind is.
        """
        relaxed = _relaxed(self)
        if relaxed and not self.relaxes:
            raise StorageError(f"{self.name}: expected a level that relaxes, found {relaxed[0]}")

    @property
    def text(self) -> str:
        """The kind as it is written in a format: ``compressed(nonunique)``, ``padded(8)``."""
        words = [*self.parameters(), *_relaxed(self)]
        return f"{self.name}({', '.join(words)})" if words else self.name

    def parameters(self) -> tuple[str, ...]:
        """Its own parameters in words, those that are not as by default."""
        return ()

    @classmethod
    def read(cls, words: Sequence[str]) -> Level:
        """The kind with parameters in words, the other way round.

        Raises:
            StorageError: a word that is none of its parameters.
        """
        options = {"nonunique": ("unique", False), "unordered": ("ordered", False)}
        chosen: dict[str, Any] = {}
        for word in words:
            option = cls.option(word) or options.get(word)
            if option is None or option[0] in chosen:
                raise StorageError(f"{cls.name}: expected a parameter of this kind, found {word!r}")
            chosen[option[0]] = option[1]
        return cls(**chosen)

    @classmethod
    def option(cls, word: str) -> tuple[str, Any] | None:
        """The field of its own that a word sets, and to what; None: no such parameter."""
        return None

    # ---- code

    @abstractmethod
    def arrays(self, site: Site) -> tuple[Array, ...]:
        """The arrays that it is stored in."""

    @abstractmethod
    def positions(self, site: Site) -> Expr | None:
        """The number of positions, or None where the storage decides it (``site.positions``)."""

    def count(self, site: Site, parent: Expr) -> Expr:
        """How many positions there are below a parent position (iteration by position)."""
        raise NotImplementedError(self.name)

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """The k-th position below a parent position (iteration by position)."""
        raise NotImplementedError(self.name)

    def coordinate(self, site: Site, parent: Expr, position: Expr) -> Expr:
        """The coordinate at a position (iteration by position)."""
        return site.load("crd", position)

    def present(self, site: Site, parent: Expr, position: Expr) -> Expr | None:
        """The condition under which a position holds a coordinate, None: always."""
        return None

    def locate(self, site: Site, parent: Expr, coordinate: Expr) -> Located:
        """Where a coordinate is below a parent position (levels that locate)."""
        raise NotImplementedError(self.name)

    @property
    def ascends(self) -> bool:
        """Whether positions ascend with parents and coordinates."""
        return True

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """The number of positions that elements take.

        Raises:
            StorageError: if the level cannot hold them.
        """
        raise NotImplementedError(self.name)

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """Assembly from sorted elements, once the number of positions is known."""
        raise NotImplementedError(self.name)

    # ---- NumPy

    def room(self, above: int, extent: int) -> int:
        """The number of positions that is known before anything is packed (0: none)."""
        return 0

    @abstractmethod
    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """Store elements of which parent positions and coordinates are given, sorted by both;
        ``above`` is the number of parent positions.

        Raises:
            StorageError: if the level cannot hold them.
        """

    @abstractmethod
    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The nodes below parent positions, in the order of ``parents`` and then of position;
        ``coordinates`` are those that the levels above decide, one a parent, for a level that
        stores none.
        """

    @abstractmethod
    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """The number of positions, if the arrays are well formed.

        Raises:
            StorageError: which array, at which place, what was expected and found.
        """


def _relaxed(level: Level) -> list[str]:
    """What a level does not promise that its kind promises by default."""
    usual = {field.name: field.default for field in fields(level)}
    promises = (("nonunique", "unique"), ("unordered", "ordered"))
    return [word for word, name in promises if usual[name] and not getattr(level, name)]


def plus(left: Expr, right: Expr) -> Expr:
    """The sum of two whole numbers."""
    return Binary("add", left, right)


def times(left: Expr, right: Expr) -> Expr:
    """The product of two whole numbers."""
    return Binary("mul", left, right)


def minus(left: Expr, right: Expr) -> Expr:
    """The difference of two whole numbers."""
    return Binary("sub", left, right)


def one_after(place: Expr) -> Expr:
    """The next whole number."""
    return plus(place, whole(1))
