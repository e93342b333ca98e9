"""Functions over unbounded integer space, in Halide's words (Ragan-Kelley et al., PLDI 2013): a
pure definition, then updates in order.

::

    x, y = Var("x"), Var("y")
    f = Func("f")
    f[x, y] = image[x, y] * 2.0

    r = RDom("r", (0, 64), (0, 48))
    histogram = Func("histogram", "int32")
    histogram[x] = 0
    histogram[image[r.x, r.y]] += 1

How far a function is computed follows from what reads it. Indices are in NumPy's order: the last
variable is the innermost one, of the loops and in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.compiler.ir import nodes
from kernelwright.env.compiler.ir.dtypes import DTYPES
from kernelwright.env.compiler.ir.nodes import REDUCTIONS, Binary, Expr, Load, walk
from kernelwright.env.compiler.tensor.domain import (
    Coordinate,
    RDom,
    Size,
    Var,
    coordinate,
    proper_name,
    size,
)
from kernelwright.env.compiler.tensor.expression import (
    Operand,
    Source,
    TensorError,
    Value,
    constant,
    merged,
)
from kernelwright.env.compiler.tensor.reduction import Reduction, conjunction
from kernelwright.env.compiler.tensor.stage import Definition, Index, Indexed, defined


class Func(Indexed):
    """A function over unbounded integer space; its first definition gives it variables and, unless
    it was made with one, a dtype.
    """

    __slots__ = ("definitions", "dtype", "name", "sources", "variables")

    def __init__(self, name: str, dtype: str | None = None) -> None:
        if dtype is not None and dtype not in DTYPES:
            raise TensorError(f"{name}: expected one of {', '.join(DTYPES)}, found {dtype!r}")
        self.name = proper_name(name)
        self.dtype = dtype or ""
        self.variables: tuple[str, ...] = ()
        self.definitions: tuple[Definition, ...] = ()
        self.sources: tuple[Source, ...] = ()

    def __repr__(self) -> str:
        return f"Func({self.name!r})"

    @property
    def rank(self) -> int:
        """The number of its variables."""
        return len(self.variables)

    def place(self, indices: Index | tuple[Index, ...]) -> tuple[Value, ...]:
        """Indices as whole numbers, one a variable.

        Raises:
            TensorError: if it has no definition yet, or they do not fit it.
        """
        if not self.definitions:
            raise TensorError(f"{self.name}: expected a definition before it is read or updated")
        return super().place(indices)

    def __setitem__(
        self, indices: Index | tuple[Index, ...], value: Operand | float | Reduction
    ) -> None:
        given = indices if isinstance(indices, tuple) else (indices,)
        if self.definitions:
            self._update(given, value)
        else:
            self._define(given, value)

    def _define(self, indices: tuple[Index, ...], value: Operand | float | Reduction) -> None:
        names = []
        for index in indices:
            if not isinstance(index, Var) or index.name in names:
                raise TensorError(
                    f"{self.name}: expected distinct variables in its first definition, found "
                    f"{index!r}"
                )
            names.append(index.name)
        result = self._value(value)
        if self.name in _read(result):
            raise TensorError(
                f"{self.name}: expected a pure first definition, found it reads itself"
            )
        self.definitions = defined(self.name, tuple(names), result)
        self.variables, self.dtype = tuple(names), result.dtype
        self.sources = result.sources

    def _value(self, value: Operand | float | Reduction) -> Value | Reduction:
        """A definition's right-hand side, in this function's dtype."""
        if isinstance(value, Operand):
            value = value.as_value()
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if not self.dtype:
                raise TensorError(
                    f'{self.name}: expected a dtype, as in Func("{self.name}", "float32"), '
                    f"for a definition that is a number"
                )
            value = constant(value, self.dtype)
        elif not isinstance(value, Reduction):
            raise TensorError(f"{self.name}: expected an expression, found {value!r}")
        if self.dtype and value.dtype != self.dtype:
            raise TensorError(f"{self.name}: expected {self.dtype}, found {value.dtype}")
        return value

    def _update(self, indices: tuple[Index, ...], value: Operand | float | Reduction) -> None:
        places = self.place(indices)
        result = self._value(value)
        if isinstance(result, Reduction):
            raise TensorError(
                f"{self.name}: expected an update by an expression, found a reduction; give it a "
                "function of its own"
            )
        sources = merged(result.sources, *(place.sources for place in places))
        domains = [source for source in sources if isinstance(source, RDom)]
        if len(domains) > 1:
            names = ", ".join(domain.name for domain in domains)
            raise TensorError(
                f"{self.name}: expected at most one domain in an update, found {names}"
            )
        domain = domains[0] if domains else None
        if domain is not None and domain.condition is not None:
            sources = merged(sources, domain.condition.sources)
        stored = tuple(place.node for place in places)
        pure = tuple(
            name
            for name, place in zip(self.variables, stored, strict=True)
            if place == nodes.Var(name)
        )
        self._check_variables(sources, pure)
        node, reduce = _combined(self.name, stored, result.node)
        definition = Definition(
            stored,
            node,
            pure,
            () if domain is None else domain.axes,
            reduce,
            conjunction(domains),
            f"_{self.updates + 1}",
        )
        for expression in definition.expressions:
            self._check_own_reads(expression, pure)
        self.definitions = (*self.definitions, definition)
        others = tuple(source for source in sources if source is not self)
        self.sources = merged(self.sources, others)

    @property
    def updates(self) -> int:
        """How many updates it has."""
        started = sum(definition.suffix == "_start" for definition in self.definitions)
        return len(self.definitions) - 1 - started

    def _check_variables(self, sources: Sequence[Source], pure: tuple[str, ...]) -> None:
        for source in sources:
            if isinstance(source, Var) and source.name not in pure:
                raise TensorError(
                    f"{self.name}: expected an update over variables that stand alone in their own "
                    f"place on its left side ({', '.join(pure) or 'none do'}), found {source.name}"
                )

    def _check_own_reads(self, expression: Expr, pure: tuple[str, ...]) -> None:
        """Values of a variable are updated in no order, so an update may not look across them."""
        for part in walk(expression):
            if isinstance(part, Load) and part.tensor == self.name:
                for name, index in zip(self.variables, part.indices, strict=True):
                    if name in pure and index != nodes.Var(name):
                        raise TensorError(
                            f"{self.name}: expected an update to read itself at the same {name} "
                            "(use a domain for what has an order), found another"
                        )

    def realize(self, *region: Size | tuple[Coordinate, Size]) -> Realization:
        """The function on a region, as an output for `lower`: per axis an extent, or a pair of the
        least coordinate and the extent.

        Raises:
            TensorError: if it has no definition, or another number of axes.
        """
        if len(region) != len(self.place((0,) * self.rank)):
            raise TensorError(f"{self.name}: expected {self.rank} axes, found {len(region)}")
        pairs = [each if isinstance(each, tuple) else (0, each) for each in region]
        low = tuple(coordinate(first) for first, _ in pairs)
        return Realization(self, low, tuple(size(length) for _, length in pairs))


@dataclass(frozen=True, slots=True, eq=False)
class Realization:
    """A function on a region: the coordinates of the first element, and the shape."""

    func: Func
    low: tuple[Expr, ...]
    shape: tuple[Expr, ...]


def _read(result: Value | Reduction) -> set[str]:
    """The tensors that a right-hand side reads."""
    return {source.name for source in result.sources if isinstance(source, Indexed)}


def _combined(name: str, place: tuple[Expr, ...], value: Expr) -> tuple[Expr, str | None]:
    """What is stored, and how it is combined with what is there: ``f[p] = f[p] + v`` adds v."""
    match value:
        case Binary(op, Load(tensor, indices), term) if (
            op in REDUCTIONS and tensor == name and indices == place and not _loads(name, term)
        ):
            return term, op
    return value, None


def _loads(name: str, value: Expr) -> bool:
    return any(isinstance(part, Load) and part.tensor == name for part in walk(value))
