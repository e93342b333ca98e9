"""Index arithmetic as a cost model sees it: how far an index moves with each loop, and how many
values it takes while some loops run and the others stand still.

Exact for affine indices; whole division and remainders by a constant (what ``fuse`` leaves) are
bounded by intervals, and what is read from memory may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.ir.intervals import Interval
from kernelwright.env.compiler.ir.intervals import interval as values_of
from kernelwright.env.compiler.ir.linear import Linear, as_term, linear
from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Load, Var
from kernelwright.env.compiler.ir.queries import has_loads, variables_of
from kernelwright.env.compiler.ir.whiles import UNKNOWN

Trips = Mapping[str, float]


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
    out, stride = Linear(0), 1
    for index, size in zip(reversed(indices), reversed(shape), strict=True):
        out = out.plus(linear(index, _through_casts), stride)
        stride *= size
    return _of_variables(out)


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


def span(node: Expr, trips: Trips, size: int) -> Span:
    """The values that an index into ``size`` elements takes while the loops in ``trips`` run."""
    bounds = interval(node, trips)
    iterations = 1.0
    for name in variables_of(node):
        iterations *= max(1.0, trips.get(name, 1.0))
    if bounds is None:
        return Span(0, size - 1, min(float(size), iterations))
    low, high = bounds
    return Span(low, high, min(float(high - low + 1), iterations))


def mean(node: Expr, trips: Trips, loaded: float) -> float:
    """The mean of a whole-number expression over the loops in ``trips``; ``loaded`` stands for what
    is read from memory.
    """
    if node == UNKNOWN:
        return loaded
    match node:
        case Const(value, _):
            return float(value)
        case Var(name):
            return max(0.0, (trips[name] - 1) / 2)
        case Cast(_, operand):
            return mean(operand, trips, loaded)
        case Binary("sub", left, right) if has_loads(left) and has_loads(right):
            return loaded  # the length of a row: the difference of two positions
        case Load():
            return loaded
        case Binary(op, left, right):
            a, b = mean(left, trips, loaded), mean(right, trips, loaded)
            return _mean_of(op, a, b)
    return loaded


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
