"""The truth about small programs, by running them: every statement instance with the elements that
it touched, and every pair of instances that must stay in order.

Nothing here knows isl or a directive: it is what answers of the compiler are checked against.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from kernelwright.env.compiler.ir.dtypes import INTEGERS
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Select,
    Stmt,
    Store,
    Var,
    children,
)

Element = tuple[str, tuple[int, ...]]
# Places among siblings and values of loops in turn: the 2d + 1 form of Kelly and Pugh (1995).
Time = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Instance:
    """One execution of a store: which store, the loops around it with their values, when it ran,
    where in the time the loops' values stand, what it touched, and the reduction that it is part
    of where such a one may be regrouped exactly.
    """

    store: int
    loops: tuple[tuple[str, int], ...]
    time: Time
    loop_places: tuple[int, ...]
    reads: frozenset[Element]
    writes: frozenset[Element]
    commutes: str | None = None

    def value(self, loop: str) -> int | None:
        """The value of a loop around it."""
        return dict(self.loops).get(loop)


def instances(procedure: Procedure, arrays: Mapping[str, Any] | None = None) -> list[Instance]:
    """All instances in program order; indices that are read from memory take ``arrays``."""
    found: list[Instance] = []
    numbers: dict[int, int] = {}
    dtypes = {tensor.name: tensor.dtype for tensor in procedure.tensors}
    walk = _Walk(dict(arrays or {}), dtypes, found, numbers)
    walk.statement(procedure.body, {}, (), (0,), (), {})
    return found


class _Walk:
    def __init__(
        self,
        arrays: dict[str, Any],
        dtypes: dict[str, str],
        found: list[Instance],
        numbers: dict[int, int],
    ) -> None:
        self._arrays, self._found, self._numbers = arrays, found, numbers
        self._dtypes = dtypes
        self._allocated = 0

    def statement(
        self,
        node: Stmt,
        values: dict[str, int],
        loops: tuple[tuple[str, int], ...],
        time: Time,
        places: tuple[int, ...],
        names: dict[str, str],
    ) -> None:
        match node:
            case Store():
                self._store(node, values, loops, time, places, names)
            case For(var, extent, body, _):
                for i in range(self._whole(extent, values)):
                    inside = {**values, var: i}
                    here, at = (*places, len(time)), (*time, i, 0)
                    self.statement(body, inside, (*loops, (var, i)), at, here, names)
            case If(condition, then):
                if self._truth(condition, values):
                    self.statement(then, values, loops, time, places, names)
            case Block(items):
                for place, item in enumerate(items):
                    self.statement(item, values, loops, (*time, place), places, names)
            case Allocate(tensor, body):
                # Every execution has an array of its own.
                self._allocated += 1
                self._dtypes[tensor.name] = tensor.dtype
                own = {**names, tensor.name: f"{tensor.name}#{self._allocated}"}
                self.statement(body, values, loops, time, places, own)
            case Call(_, body):
                self.statement(body, values, loops, time, places, names)

    def _store(
        self,
        node: Store,
        values: dict[str, int],
        loops: tuple[tuple[str, int], ...],
        time: Time,
        places: tuple[int, ...],
        names: dict[str, str],
    ) -> None:
        def element(tensor: str, indices: tuple[Expr, ...]) -> Element:
            place = tuple(self._whole(index, values) for index in indices)
            return names.get(tensor, tensor), place

        reads: set[Element] = set()
        whole = self._dtypes.get(node.tensor) in INTEGERS
        exact = node.reduce is not None and (whole or node.reduce in ("min", "max"))

        def read(part: Expr) -> None:
            if isinstance(part, Load):
                reads.add(element(part.tensor, part.indices))
            if isinstance(part, Select):
                # Only the chosen branch is evaluated.
                read(part.condition)
                chosen = self._truth(part.condition, values)
                read(part.then if chosen else part.other)
                return
            for child in children(part):
                read(child)

        for part in (node.value, *node.indices):
            read(part)
        target = element(node.tensor, node.indices)
        # A value that is combined with itself does not commute.
        commutes = node.reduce if exact and target not in reads else None
        if node.reduce is not None:
            reads.add(target)
        number = self._numbers.setdefault(id(node), len(self._numbers))
        self._found.append(
            Instance(number, loops, time, places, frozenset(reads), frozenset({target}), commutes)
        )

    def _whole(self, node: Expr, values: dict[str, int]) -> int:
        match node:
            case Const(value, _):
                return int(value)
            case Var(name):
                return values[name]
            case Load(tensor, indices):
                place = tuple(self._whole(index, values) for index in indices)
                return int(self._arrays[tensor][place])
            case Cast(_, operand):
                return self._whole(operand, values)
            case Binary(op, left, right):
                a, b = self._whole(left, values), self._whole(right, values)
                return int(_OPERATIONS[op](a, b))
            case Select(condition, then, other):
                return self._whole(then if self._truth(condition, values) else other, values)
        raise ValueError(f"expected a whole number, found {node}")

    def _truth(self, node: Expr, values: dict[str, int]) -> bool:
        match node:
            case Const(value, _):
                return bool(value)
            case Binary("and", left, right):
                return self._truth(left, values) and self._truth(right, values)
            case Binary("or", left, right):
                return self._truth(left, values) or self._truth(right, values)
            case Binary(op, left, right):
                return bool(_OPERATIONS[op](self._whole(left, values), self._whole(right, values)))
        raise ValueError(f"expected a condition, found {node}")


_OPERATIONS: dict[str, Callable[[int, int], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def pairs(
    found: list[Instance], *, exchangeable: bool = False
) -> Iterator[tuple[Instance, Instance]]:
    """Every pair that touches an element, one of them writing it, the earlier first; without those
    that may exchange their places (one reduction's, of whole numbers, least or greatest) if
    ``exchangeable``.
    """
    touching: dict[Element, list[tuple[int, bool]]] = defaultdict(list)
    for number, instance in enumerate(found):
        for element in instance.reads | instance.writes:
            touching[element].append((number, element in instance.writes))
    known = set()
    for places in touching.values():
        for (first, writes), (second, also) in product(places, places):
            ops = {found[first].commutes, found[second].commutes}
            if exchangeable and writes and also and len(ops) == 1 and None not in ops:
                continue
            if first < second and (writes or also) and (first, second) not in known:
                known.add((first, second))
                yield found[first], found[second]


def turned_around(
    found: list[Instance], time: Callable[[Instance], Time]
) -> tuple[Instance, Instance] | None:
    """A pair that another order does not keep, None if it keeps all."""
    for first, second in pairs(found, exchangeable=True):
        if _padded(time(first)) >= _padded(time(second)):
            return first, second
    return None


def _padded(time: Time) -> Time:
    return (*time, *(0,) * (64 - len(time)))


def carried(found: list[Instance], loop: str) -> tuple[Instance, Instance] | None:
    """A pair that meets in two iterations of one run of a loop, None if there is none."""
    for first, second in pairs(found):
        mine, other = first.value(loop), second.value(loop)
        if mine is not None and other is not None and mine != other:
            outside = [before(each, loop) for each in (first, second)]
            if outside[0] == outside[1]:
                return first, second
    return None


def before(instance: Instance, loop: str) -> tuple[tuple[str, int], ...]:
    """The loops outside a loop, with their values."""
    names = [name for name, _ in instance.loops]
    return instance.loops[: names.index(loop)]


def small_arrays(procedure: Procedure, rng: np.random.Generator) -> dict[str, Any]:
    """Inputs of whole values; those that may be indices are all 1, as a compiler that does not see
    them must expect that they are equal.
    """
    out = {}
    for tensor in procedure.tensors:
        if tensor.role == "input":
            shape = [int(size.value) for size in tensor.shape if isinstance(size, Const)]
            some = np.ones(shape) if tensor.dtype in INTEGERS else rng.integers(1, 5, shape)
            out[tensor.name] = some.astype(tensor.dtype)
    return out
