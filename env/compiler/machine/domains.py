"""How often a statement runs: the points of its iteration domain, counted.

Loops whose bounds and guards have nothing to do with one another are counted apart and multiplied;
of loops that do, one that enters linearly is summed in closed form and the others are enumerated
with NumPy. So the count is exact for any guard that is arithmetic on loop variables, tiles and
tails and skewed nests alike; a guard that reads memory counts as if it always held, and the result
says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.evaluate import ON_ARRAYS
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import variables_of
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.machine.affine import affine, interval
from kernelwright.env.compiler.machine.nest import EstimateError

# Points that are enumerated at once, and at most.
CHUNK, LIMIT = 1 << 20, 1 << 26
Grid = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Points:
    """A number of points, and whether it is exact or only not exceeded."""

    number: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Domain:
    """Loops from the outside in (variable and extent) and what holds inside them."""

    loops: tuple[tuple[str, Expr], ...] = ()
    conditions: tuple[Expr, ...] = ()

    def inside(self, var: str, extent: Expr) -> Domain:
        """The domain of a loop's body."""
        return Domain((*self.loops, (var, extent)), self.conditions)

    def where(self, condition: Expr) -> Domain:
        """The part of the domain where a condition holds."""
        return Domain(self.loops, (*self.conditions, condition))


def count(domain: Domain, extents: Mapping[str, int]) -> Points:
    """The points of a domain, for these values of the extents.

    Raises:
        EstimateError: if a loop's extent is not known, because it is read from memory or an extent
            is missing.
    """
    known: dict[str, Expr] = {name: whole(value) for name, value in extents.items()}
    loops = [(var, simplify(substitute(size, known))) for var, size in domain.loops]
    variables = {var for var, _ in loops}
    for var, size in loops:
        unknown = [p for p in walk(size) if _is_unknown(p, variables)]
        if unknown:
            raise EstimateError(
                f"expected loops of known extents, found {var} in {print_expr(unknown[0])}"
            )
    conditions = [simplify(substitute(c, known)) for c in domain.conditions]
    split = [part for condition in conditions for part in _conjuncts(condition)]
    usable = [c for c in split if not any(_is_unknown(part, variables) for part in walk(c))]
    is_exact = len(usable) == len(split)
    number = 1
    for part, held in _components(loops, usable):
        found = _count_component(part, held)
        number, is_exact = number * found.number, is_exact and found.is_exact
        if number == 0:
            return Points(0)
    return Points(number, is_exact)


def _is_unknown(part: Expr, variables: set[str]) -> bool:
    return isinstance(part, Load) or (isinstance(part, Var) and part.name not in variables)


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Const(True, "bool"):
            return
        case Binary("and", left, right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield condition


def _names(*expressions: Expr) -> set[str]:
    return {name for each in expressions for name in variables_of(each)}


_Loops = list[tuple[str, Expr]]


def _components(loops: _Loops, conditions: list[Expr]) -> list[tuple[_Loops, list[Expr]]]:
    """Loops and conditions in groups that share no variable; loops keep their order."""
    groups: list[set[str]] = []
    links = [{var} | _names(size) for var, size in loops] + [_names(c) for c in conditions]
    for link in links:
        apart = [group for group in groups if not group & link]
        groups = [*apart, link.union(*(group for group in groups if group & link))]
    found = []
    for group in groups:
        own = [loop for loop in loops if loop[0] in group]
        found.append((own, [c for c in conditions if _names(c) and _names(c) <= group]))
    constant = [c for c in conditions if not _names(c)]
    return [*found, ([], constant)] if constant else found


def _count_component(loops: _Loops, conditions: list[Expr]) -> Points:
    if not conditions and all(isinstance(size, Const) for _, size in loops):
        return Points(prod(max(0, int(size.value)) for _, size in loops if isinstance(size, Const)))
    most: dict[str, float] = {}
    for var, size in loops:
        bounds = interval(size, most)
        if bounds is None:
            raise EstimateError(
                f"expected loops of known extents, found {var} in {print_expr(size)}"
            )
        most[var] = max(0, bounds[1])
    if any(size == 0 for size in most.values()):
        return Points(0)
    summed = _summable(loops, conditions, most)
    rest = [loop for loop in loops if loop[0] != summed]
    total = prod(int(most[var]) for var, _ in rest)
    if total > LIMIT:
        # Too many to look at: as if every guard held.
        return Points(prod(int(size) for size in most.values()), is_exact=False)
    extent = dict(loops).get(summed) if summed is not None else None
    return Points(_enumerated(rest, conditions, most, summed, extent))


def _summable(loops: _Loops, conditions: list[Expr], most: Mapping[str, float]) -> str | None:
    """The longest loop that no other's extent depends on and that enters conditions linearly."""
    best = None
    for var, _ in loops:
        bounds = any(var in _names(size) for _, size in loops)
        plain = all(_slope(c, var) is not None for c in conditions if var in _names(c))
        if not bounds and plain and (best is None or most[var] > most[best]):
            best = var
    return best


def _slope(condition: Expr, var: str) -> tuple[str, Linear] | None:
    """A comparison as its operator and the difference of its sides, if that is linear; ``ne`` cuts
    an interval in two and is none.
    """
    if isinstance(condition, Binary) and condition.op in ("lt", "le", "gt", "ge", "eq"):
        difference = affine(Binary("sub", condition.left, condition.right))
        if difference is not None and difference.factor(var):
            return condition.op, difference
    return None


def _enumerated(
    loops: _Loops,
    conditions: list[Expr],
    most: Mapping[str, float],
    summed: str | None,
    extent: Expr | None,
) -> int:
    """The points, with the loops enumerated and one summed in closed form."""
    sizes = [int(most[var]) for var, _ in loops]
    if not loops:
        return _counted({}, [], conditions, summed, extent)
    first, per_chunk = sizes[0], max(1, CHUNK // max(1, prod(sizes[1:])))
    total = 0
    for start in range(0, first, per_chunk):
        grid: Grid = {}
        for axis, ((var, _), size) in enumerate(zip(loops, sizes, strict=True)):
            shape = [1] * len(loops)
            shape[axis] = -1
            values = np.arange(size) if axis else np.arange(start, min(first, start + per_chunk))
            grid[var] = values.reshape(shape)
        total += _counted(grid, loops, conditions, summed, extent)
    return total


def _counted(
    grid: Grid, loops: _Loops, conditions: list[Expr], summed: str | None, extent: Expr | None
) -> int:
    shape = np.broadcast_shapes(*(values.shape for values in grid.values())) if grid else ()
    held: NDArray[Any] = np.ones(shape, bool)
    for var, size in loops:
        if not isinstance(size, Const):
            held = held & (grid[var] < evaluate(size, grid))
    closed = []
    for condition in conditions:
        if summed is not None and summed in _names(condition):
            closed.append(condition)
        else:
            held = held & evaluate(condition, grid)
    if summed is None or extent is None:
        return int(np.count_nonzero(held))
    low: NDArray[Any] = np.zeros(shape, np.int64)
    high: NDArray[Any] = np.broadcast_to(np.asarray(evaluate(extent, grid), np.int64), shape) - 1
    for condition in closed:
        slope = _slope(condition, summed)
        assert slope is not None
        low, high = _narrowed(low, high, *slope, summed, grid)
    return int(np.where(held, np.maximum(high - low + 1, 0), 0).sum())


def _narrowed(
    low: NDArray[Any], high: NDArray[Any], op: str, difference: Linear, var: str, grid: Grid
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The interval of a variable where ``step * var + rest`` compares with 0."""
    step = difference.factor(var)
    rest: Any = difference.constant
    for term, factor in difference.without(var).terms:
        rest = rest + factor * evaluate(term, grid)
    if op in ("gt", "ge"):
        step, rest, op = -step, -rest, {"gt": "lt", "ge": "le"}[op]
    if op == "lt":
        rest = rest + 1
    # Now step * var <= -rest, or an equation.
    if op == "eq":
        exact = -rest // step
        hit = exact * step == -rest
        return np.where(hit, np.maximum(low, exact), 1), np.where(hit, np.minimum(high, exact), 0)
    if step > 0:
        return low, np.minimum(high, -rest // step)
    return np.maximum(low, -(rest // step)), high


def evaluate(node: Expr, grid: Grid) -> Any:
    """A whole number or condition at all points of a grid.

    Raises:
        EstimateError: if it is no arithmetic on the grid's variables.
    """
    match node:
        case Const(value, _):
            return value
        case Var(name) if name in grid:
            return grid[name]
        case Binary(op, left, right) if op in ON_ARRAYS:
            return ON_ARRAYS[op](evaluate(left, grid), evaluate(right, grid))
        case Unary("not", operand):
            return np.logical_not(evaluate(operand, grid))
        case Unary("neg", operand):
            return -evaluate(operand, grid)
        case Unary("abs", operand):
            return abs(evaluate(operand, grid))
        case Cast("int64", operand):
            return evaluate(operand, grid)
        case Select(condition, then, other):
            chosen = evaluate(condition, grid)
            return np.where(chosen, evaluate(then, grid), evaluate(other, grid))
    raise EstimateError(f"expected arithmetic on loop variables, found {node}")


def shape_bytes(shape: Sequence[Expr], itemsize: int, extents: Mapping[str, int]) -> int:
    """The bytes of an array.

    Raises:
        EstimateError: if an extent in its shape is not known.
    """
    grid: Grid = {name: np.asarray(value) for name, value in extents.items()}
    return itemsize * prod(max(0, int(evaluate(size, grid))) for size in shape)
