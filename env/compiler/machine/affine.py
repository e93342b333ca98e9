"""Index arithmetic as a cost model sees it: how far an index moves with each loop, and how many
values it takes while some loops run and the others stand still.

Exact for affine indices; whole division and remainders by a constant (what ``fuse`` leaves) are
bounded by intervals, and what is read from memory may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from kernelwright.env.compiler.ir.intervals import Interval
from kernelwright.env.compiler.ir.intervals import interval as values_of
from kernelwright.env.compiler.ir.linear import Linear, as_term, linear
from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Load, Var, children, walk
from kernelwright.env.compiler.ir.queries import has_loads, variables_of
from kernelwright.env.compiler.ir.whiles import UNKNOWN

Trips = Mapping[str, float]
# What stands for numbers from memory: one for all, or by the array that they are read from. Of an
# array of positions it is the mean distance of neighbours, of a scalar its mean.
Loaded: TypeAlias = float | Mapping[str, float]


def affine(node: Expr) -> Linear | None:
    """A whole-number expression as a linear form of variables alone, in order of their names; None
    if it is none.
    """
    return _of_variables(linear(node, _through_casts))


def _through_casts(node: Expr) -> Linear:
    match node:
        case Cast("int64", operand):
            return linear(operand, _through_casts)
    return as_term(node)


def _of_variables(form: Linear) -> Linear | None:
    names = {each.name: factor for each, factor in form.terms if isinstance(each, Var)}
    if len(names) < len(form.terms):
        return None
    return Linear(form.constant, tuple((Var(name), names[name]) for name in sorted(names)))


def flat(indices: tuple[Expr, ...], shape: tuple[int, ...]) -> Linear | None:
    """The row-major offset of an element as a linear form of variables; None if an index has
    none.
    """
    return _of_variables(_row_major(indices, shape))


def flat_from_loads(indices: tuple[Expr, ...], shape: tuple[int, ...]) -> Linear | None:
    """The same with terms that are read from memory, which stand behind the variables: a row's
    begin, a coordinate, a cursor. None if there is another term that is no variable.
    """
    whole_form = _row_major(indices, shape)
    plain = _of_variables(whole_form.only(lambda term: not has_loads(term)))
    if plain is None:
        return None
    return whole_form.only(has_loads).plus(plain).shifted(whole_form.constant)


def _row_major(indices: tuple[Expr, ...], shape: tuple[int, ...]) -> Linear:
    out, stride = Linear(0), 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        out = out.plus(linear(index, _through_casts), stride)
        stride *= size
    return out


def terms_of(index: Expr) -> tuple[Expr, ...]:
    """What an index adds up, each with its multiple."""
    form = linear(index, _through_casts)
    return tuple(Linear(0, (each,)).expression() for each in form.terms)


def moves(offset: Linear, var: str) -> bool:
    """Whether an element changes with a loop: by its own variable, or by what is read there. A
    scalar that is read may have been stored in any loop.
    """
    return offset.mentions(var) or any(is_cursor(term) for term, _ in offset.terms)


def is_cursor(term: Expr) -> bool:
    """Whether a term reads a scalar, such as the next place of an output."""
    return any(isinstance(part, Load) and not part.indices for part in walk(term))


def interval(node: Expr, trips: Trips) -> Interval | None:
    """The least and greatest value while the loops in ``trips`` run and all other variables are 0;
    None if it depends on memory.
    """
    return values_of(node, lambda name: (0, max(0, round(trips.get(name, 1)) - 1)))


@dataclass(frozen=True, slots=True)
class Span:
    """The values of an index: the least, the greatest, and how many different ones."""

    low: int
    high: int
    count: float

    def hull(self, other: Span) -> Span:
        """What holds both."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Span(low, high, min(high - low + 1, self.count + other.count))

    @property
    def step(self) -> float:
        """The mean distance of neighbouring values."""
        return (self.high - self.low) / (self.count - 1) if self.count > 1 else 1.0


def span(node: Expr, trips: Trips, size: int, ordered: frozenset[str] = frozenset()) -> Span:
    """The values that an index into ``size`` elements takes while the loops in ``trips`` run. Where
    one is read from arrays in ``ordered``, rows follow one another; else they may be anywhere.
    """
    bounds = interval(node, trips)
    iterations = 1.0
    for name in variables_of(node):
        iterations *= max(1.0, trips.get(name, 1.0))
    if bounds is None:
        if not steps_along(node, ordered):
            return Span(0, size - 1, min(float(size), iterations))
        if is_cursor(node):
            iterations = prod(max(1.0, each) for each in trips.values())
        count = min(float(size), iterations)
        return Span(0, max(0, round(count) - 1), count)
    low, high = bounds
    return Span(low, high, min(float(high - low + 1), iterations))


def steps_along(node: Expr, ordered: frozenset[str]) -> bool:
    """Whether what an index reads from memory ascends from one iteration to the next."""
    return all(load.tensor in ordered for load in _outermost(node))


def _outermost(node: Expr) -> Iterator[Load]:
    """The loads of an expression that are in no index of another."""
    if isinstance(node, Load):
        yield node
        return
    for child in children(node):
        yield from _outermost(child)


def mean(node: Expr, trips: Trips, loaded: Loaded) -> float:
    """The mean of a whole-number expression over the loops in ``trips``; ``loaded`` stands for what
    is read from memory.

    Raises:
        KeyError: for a variable without trips, or an array without a number.
    """
    if node == UNKNOWN:
        return _standing_for("while", loaded)
    match node:
        case Const(value, _):
            return float(value)
        case Var(name):
            return max(0.0, (trips[name] - 1) / 2)
        case Cast(_, operand):
            return mean(operand, trips, loaded)
        case Binary("sub", left, right) if (row := _read_from(left)) and row == _read_from(right):
            # The length of a row: the difference of two positions.
            return _standing_for(row, loaded)
        case Load(tensor, _):
            return _standing_for(tensor, loaded)
        case Binary(op, left, right):
            a, b = mean(left, trips, loaded), mean(right, trips, loaded)
            return _mean_of(op, a, b)
    return _standing_for(f"{node}", loaded)


def _read_from(node: Expr) -> str | None:
    """The array of which an expression is an element."""
    match node:
        case Cast(_, operand):
            return _read_from(operand)
        case Load(tensor, indices) if indices:
            return tensor
    return None


def _standing_for(name: str, loaded: Loaded) -> float:
    return loaded[name] if isinstance(loaded, Mapping) else loaded


def _mean_of(op: str, a: float, b: float) -> float:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "floordiv":
            return float(a // b) if b else a
        case "mod":
            return (b - 1) / 2
        case "min":
            return min(a, b)
    return max(a, b)
