"""Boundary conditions: functions that are an input inside its bounds and say what lies outside
(the names are Halide's ``BoundaryConditions``).

Each reads the input only inside its bounds, whatever region of the function is needed.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.compiler.ir.nodes import Const, Expr
from kernelwright.env.compiler.tensor.domain import Extent, Var, free_extents
from kernelwright.env.compiler.tensor.expression import Operand, TensorError, Value
from kernelwright.env.compiler.tensor.func import Func
from kernelwright.env.compiler.tensor.functions import clamp, minimum, select
from kernelwright.env.compiler.tensor.stage import Placeholder, Stage

_Inside = Callable[[Value, Value, Value], Value]


def repeat_edge(source: Placeholder | Stage, name: str) -> Func:
    """The nearest element inside: a b c d becomes … a a b c d d …, endlessly."""
    return _moved(source, name, lambda x, low, size: clamp(x, low, low + size - 1))


def repeat_image(source: Placeholder | Stage, name: str) -> Func:
    """Copies side by side: a b c d becomes … c d a b c d a b …, endlessly.

    Raises:
        TensorError: if an extent of the input is no number: remainders by it are not affine.
    """
    _check_fixed("repeat_image", source)
    return _moved(source, name, lambda x, low, size: (x - low) % size + low)


def mirror_image(source: Placeholder | Stage, name: str) -> Func:
    """Copies mirrored in turns, edges twice: a b c d becomes … b a a b c d d c …, endlessly.

    Raises:
        TensorError: if an extent of the input is no number: remainders by it are not affine.
    """
    _check_fixed("mirror_image", source)

    def inside(x: Value, low: Value, size: Value) -> Value:
        period = (x - low) % (size * 2)
        return minimum(period, size * 2 - 1 - period) + low

    return _moved(source, name, inside)


def mirror_interior(source: Placeholder | Stage, name: str) -> Func:
    """Copies mirrored in turns, edges once: a b c d becomes … c b a b c d c b …, endlessly.

    Raises:
        TensorError: if an extent of the input is no number, or 1.
    """
    _check_fixed("mirror_interior", source, 2)

    def inside(x: Value, low: Value, size: Value) -> Value:
        period = (x - low) % (size * 2 - 2)
        return minimum(period, size * 2 - 2 - period) + low

    return _moved(source, name, inside)


def constant_exterior(source: Placeholder | Stage, value: Operand | float, name: str) -> Func:
    """A value outside: a b c d becomes … v v a b c d v v …, endlessly."""
    func = Func(name, source.dtype)
    variables = _variables(source)
    inside: Value | None = None
    for x, low, size in _bounds(source, variables):
        held = (x >= low) & (x < low + size)
        inside = held if inside is None else inside & held
    if inside is None:
        raise TensorError(f"{source.name}: expected at least one axis, found none")
    func[variables] = select(inside, source[variables], value)
    return func


def _variables(source: Placeholder | Stage) -> tuple[Var, ...]:
    return tuple(Var(f"x{axis}") for axis in range(source.rank))


def _bounds(
    source: Placeholder | Stage, variables: tuple[Var, ...]
) -> list[tuple[Value, Value, Value]]:
    """By axis: the coordinate, the least one inside, and how many lie inside."""
    return [
        (variable.as_value(), _fixed(low), _fixed(size))
        for variable, low, size in zip(variables, source.low, source.shape, strict=True)
    ]


def _fixed(node: Expr) -> Value:
    return Value(node, "int64", tuple(Extent(name) for name in free_extents(node)))


def _moved(source: Placeholder | Stage, name: str, inside: _Inside) -> Func:
    func = Func(name, source.dtype)
    variables = _variables(source)
    places = tuple(inside(*bounds) for bounds in _bounds(source, variables))
    func[variables] = source[places]
    return func


def _check_fixed(what: str, source: Placeholder | Stage, least: int = 1) -> None:
    for axis, size in enumerate(source.shape):
        if not isinstance(size, Const) or int(size.value) < least:
            expected = "a number" if least == 1 else f"a number of at least {least}"
            raise TensorError(
                f"{what}: expected {expected} as the extent of axis {axis} of {source.name}, "
                f"found {size.value if isinstance(size, Const) else free_extents(size)}"
            )
