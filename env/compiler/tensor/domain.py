"""What definitions run over: variables of unbounded space, and bounded domains of reductions and
updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelwright.env.compiler.ir import nodes
from kernelwright.env.compiler.ir.nodes import Binary, Expr, walk
from kernelwright.env.compiler.ir.queries import has_loads
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.tensor.expression import (
    Operand,
    Source,
    TensorError,
    Value,
    merged,
)

Size = int | str | Operand
Coordinate = int | str | Operand
_ZERO = whole(0)
# What Halide calls the dimensions of a domain.
_DIMENSIONS = ("x", "y", "z", "w")


@dataclass(frozen=True, slots=True, eq=False)
class Extent(Source):
    """An extent by name, known when the kernel is called."""

    name: str


def extent(name: str) -> Value:
    """An extent by name, as a value: its number is known when the kernel is called."""
    proper_name(name)
    return Value(nodes.Var(name), "int64", (Extent(name),))


def proper_name(name: str) -> str:
    """A name that is one.

    Raises:
        TensorError: if it is no identifier.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise TensorError(f"expected a name, found {name!r}")
    return name


def size(given: Size) -> Expr:
    """A size: a number of at least 1, an extent's name, or whole-number arithmetic on extents.

    Raises:
        TensorError: if it is none of these.
    """
    if isinstance(given, int) and (isinstance(given, bool) or given < 1):
        raise TensorError(f"expected a size of at least 1 or an extent's name, found {given!r}")
    return coordinate(given, "a size of at least 1 or an extent's name")


def coordinate(given: Coordinate, expected: str = "a whole number or an extent's name") -> Expr:
    """A coordinate: a whole number, an extent's name, or whole-number arithmetic on extents.

    Raises:
        TensorError: if it is none of these.
    """
    if isinstance(given, str):
        if not given.isidentifier():
            raise TensorError(f"expected an extent's name, found {given!r}")
        return nodes.Var(given)
    if isinstance(given, Operand):
        value = given.as_value()
        fixed = all(isinstance(source, Extent) for source in value.sources)
        if value.dtype == "int64" and fixed and not has_loads(value.node):
            return simplify(value.node)
    elif isinstance(given, int) and not isinstance(given, bool):
        return whole(given)
    raise TensorError(f"expected {expected}, found {given!r}")


def free_extents(node: Expr) -> tuple[str, ...]:
    """The names in an expression over extents, in order, each once."""
    return tuple(dict.fromkeys(p.name for p in walk(node) if isinstance(p, nodes.Var)))


@dataclass(frozen=True, slots=True, eq=False)
class Var(Operand, Source):
    """A variable of a function over unbounded integer space."""

    name: str

    def __post_init__(self) -> None:
        proper_name(self.name)

    def as_value(self) -> Value:
        """The variable as an index."""
        return Value(nodes.Var(self.name), "int64", (self,))


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a definition: its name, extent and first value; ``own_name`` if a user gave it that
    name, which the loop then has wherever it is free.
    """

    name: str
    extent: Expr
    low: Expr = _ZERO
    own_name: bool = False


class RDom(Operand, Source):
    """A bounded domain that a reduction or an update runs over, in lexicographic order, the first
    dimension outermost (a reduction domain; Ragan-Kelley et al., PLDI 2013, section 2).

    ``RDom("r", (1, 7), (0, "n"))`` runs over [1, 8) x [0, n): each dimension is its least value and
    its extent. Its dimensions are ``r.x``, ``r.y``, ``r.z``, ``r.w`` and ``r[0]``, …; a domain of
    one dimension is an index itself. ``RDom("r", step=(0, 9), i=(1, "n"))`` names them instead:
    ``r.step`` and ``r.i``, and the loops are called so.
    """

    __slots__ = ("axes", "condition", "name")

    def __init__(
        self,
        name: str,
        *ranges: tuple[Coordinate, Size],
        **named: tuple[Coordinate, Size],
    ) -> None:
        self.name = proper_name(name)
        if bool(ranges) == bool(named):
            found = "both" if ranges else "none"
            raise TensorError(
                f"{name}: expected dimensions by place or by name, found {found}"
                if ranges
                else f"{name}: expected at least one dimension, found none"
            )
        axes = []
        for number, each in enumerate(ranges or named.values()):
            if not isinstance(each, tuple) or len(each) != 2:
                raise TensorError(
                    f"{name}: expected pairs of a least value and an extent, found {each!r}"
                )
            own = name if len(ranges) == 1 else f"{name}_{_dimension(number)}"
            own = list(named)[number] if named else own
            low = coordinate(each[0])
            axes.append(Axis(proper_name(own), size(each[1]), low, own_name=bool(named)))
        self.axes = tuple(axes)
        self.condition: Value | None = None

    def __repr__(self) -> str:
        return f"RDom({self.name!r})"

    def where(self, condition: Operand) -> RDom:
        """The domain without the points where a condition on its dimensions fails; use the result's
        dimensions instead of the first one's.

        Raises:
            TensorError: if it is no condition.
        """
        held = condition.as_value() if isinstance(condition, Operand) else None
        if held is None or held.dtype != "bool":
            raise TensorError(f"{self.name}: expected a condition, found {condition!r}")
        known = self.condition
        if known is not None:
            sources = merged(known.sources, held.sources)
            held = Value(Binary("and", known.node, held.node), "bool", sources)
        narrower = RDom.__new__(RDom)
        narrower.name, narrower.axes = self.name, self.axes
        # What it says of the wider domain's dimensions holds of its own.
        others = tuple(source for source in held.sources if not isinstance(source, RDom))
        narrower.condition = Value(held.node, "bool", others)
        return narrower

    def as_value(self) -> Value:
        """The index of a domain of one dimension.

        Raises:
            TensorError: if it has more.
        """
        if len(self.axes) > 1:
            names = ", ".join(f"{self.name}.{_dimension(i)}" for i in range(len(self.axes)))
            raise TensorError(f"{self.name}: expected one of {names}, found the whole domain")
        return self[0]

    @property
    def value(self) -> Value:
        """The index of a domain of one dimension; the same as the domain itself."""
        return self.as_value()

    def __getitem__(self, dimension: int) -> Value:
        """A dimension as an index.

        Raises:
            TensorError: if there is none of this number.
        """
        if not 0 <= dimension < len(self.axes):
            raise TensorError(
                f"{self.name}: expected a dimension below {len(self.axes)}, found {dimension}"
            )
        return Value(nodes.Var(self.axes[dimension].name), "int64", (self,))

    def __iter__(self) -> Iterator[Value]:
        return (self[dimension] for dimension in range(len(self.axes)))

    def __getattr__(self, dimension: str) -> Value:
        """A dimension by name: ``x``, ``y``, ``z`` and ``w`` by place, unless they have names.

        Raises:
            AttributeError: if there is none of this name.
        """
        if dimension.startswith("__") or dimension in RDom.__slots__:
            raise AttributeError(dimension)
        names = [axis.name for axis in self.axes]
        if not self.axes[0].own_name:
            names = [_dimension(number) for number in range(len(self.axes))]
        if dimension not in names:
            if dimension in _DIMENSIONS and not self.axes[0].own_name:
                return self[_DIMENSIONS.index(dimension)]
            known = ", ".join(names)
            raise AttributeError(
                f"{self.name}: expected one of the dimensions {known}, found {dimension!r}"
            )
        return self[names.index(dimension)]


def _dimension(number: int) -> str:
    return _DIMENSIONS[number] if number < len(_DIMENSIONS) else str(number)


def reduce_axis(name: str, length: Size) -> RDom:
    """An axis to reduce over, from 0 on: a domain of one dimension."""
    return RDom(name, (0, length))
