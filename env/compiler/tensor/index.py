"""Index arithmetic after a change of coordinates: constants gathered at the end, so that the index
of an array reads as one would write it.
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, children, rebuild
from kernelwright.env.compiler.ir.simplify import whole


def moved(index: Expr, low: Expr) -> Expr:
    """A coordinate as the place in an array whose first element is at ``low``."""
    if isinstance(low, Const):
        away = int(low.value)
        if away == 0:
            return index
        return Binary("sub" if away > 0 else "add", index, whole(abs(away)))
    return Binary("sub", index, low)


def tidy(node: Expr) -> Expr:
    """The same whole number with its constants gathered; itself where there is at most one."""
    if _constants(node) < 2:
        return node
    core, constant = _parts(node)
    if core is None:
        return whole(constant)
    if constant == 0:
        return core
    return Binary("add" if constant > 0 else "sub", core, whole(abs(constant)))


def _constants(node: Expr) -> int:
    """How many constants are added in it."""
    match node:
        case Const():
            return 1
        case Binary("add" | "sub", left, right):
            return _constants(left) + _constants(right)
        case Binary("mul", left, Const()) | Binary("mul", Const(), left):
            return _constants(left) + int(_constants(left) > 0)
    return max((_constants(child) for child in children(node)), default=0)


def _parts(node: Expr) -> tuple[Expr | None, int]:
    """What is not constant (None for zero), and the constant that is added to it."""
    match node:
        case Const(value, "int64"):
            return None, int(value)
        case Binary("add", left, right):
            (a, first), (b, second) = _parts(left), _parts(right)
            if a is None or b is None:
                return a if b is None else b, first + second
            return Binary("add", a, b), first + second
        case Binary("sub", left, right):
            (a, first), (b, second) = _parts(left), _parts(right)
            if b is None:
                return a, first - second
            return Binary("sub", whole(0) if a is None else a, b), first - second
        case Binary("mul", left, Const(factor, "int64")):
            core, constant = _parts(left)
            times = None if core is None else Binary("mul", core, whole(int(factor)))
            return times, constant * int(factor)
        case Binary("mul", Const(factor, "int64"), right):
            core, constant = _parts(right)
            times = None if core is None else Binary("mul", whole(int(factor)), core)
            return times, constant * int(factor)
    below = children(node)
    simpler = tuple([tidy(child) for child in below])
    if any(new is not old for new, old in zip(simpler, below, strict=True)):
        node = rebuild(node, simpler)
    return node, 0
