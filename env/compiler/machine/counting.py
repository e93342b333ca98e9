"""What one iteration of a body does: operations, accesses, and what hangs on what.

An access that several copies make is made once, and one that does not move with the loop around is
made when the loop is entered (what every compiler does with ``restrict`` pointers): an accumulator
then lives in a register.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    Load,
    Store,
    Unary,
    children,
    walk,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.machine.affine import flat_from_loads, moves
from kernelwright.env.compiler.machine.nest import Nest
from kernelwright.env.compiler.machine.recurrence import Update, recurrence
from kernelwright.env.compiler.machine.straight import Copies, Lanes, Place, vector_lanes

FUNCTIONS = ("exp", "log", "tanh", "erf")
# Integer operations of a division or remainder by a power of two, and by another constant.
SHIFT_OPS, DIVIDE_OPS = 2.0, 6.0


@dataclass(slots=True)
class Counts:
    """What one iteration of a body does, and (``entry_…``) what is done once around the loop.

    ``pipe_slots`` are operations in widths of a floating-point pipe, ``ideal_slots`` the same if
    every lane were used; ``accumulator_registers`` hold sums while the loop runs, and
    ``update_chain`` is how many updates each waits for; after ``chain_runs`` runs of the loop they
    start anew (None: never). ``fresh_chain`` are updates one after another of sums that start anew
    in each iteration.
    """

    flops: float = 0.0
    pipe_slots: float = 0.0
    ideal_slots: float = 0.0
    divide_slots: float = 0.0
    function_calls: dict[str, float] = field(default_factory=dict)
    load_slots: float = 0.0
    store_slots: float = 0.0
    uops: float = 0.0
    integer_ops: float = 0.0
    entry_slots: float = 0.0
    accumulator_registers: float = 0.0
    vector_loads: float = 0.0
    update_chain: float = 0.0
    memory_chain: float = 0.0
    latency_kind: str = "add"
    chain_runs: float | None = None
    fresh_chain: float = 0.0


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes of a floating-point pipe and of a register."""

    pipe: int
    register: int


class Counter:
    """Counts one body for one loop around it; ``outer`` are the loops around that, from the inside
    out.
    """

    def __init__(
        self, nest: Nest, widths: Widths, around: str | None, outer: tuple[str, ...]
    ) -> None:
        self._nest, self._widths, self._around, self._outer = nest, widths, around, outer
        self._reads: dict[object, list[NDArray[np.int64]]] = {}
        self._writes: dict[object, list[NDArray[np.int64]]] = {}
        self._about: dict[object, tuple[float, float, float | None]] = {}
        self._updates: list[Update] = []
        self._begun: set[str] = set()
        self.counts = Counts()

    def count(self, places: list[Place], strip: Lanes | None = None) -> Counts:
        """The counts of one iteration; ``strip`` is the loop around itself, run in lanes."""
        for place in places:
            self._place(place, strip)
        counts = self.counts
        if self._around is not None:
            carried = recurrence(self._updates, self._around, self._nest)
            counts.update_chain = max(counts.update_chain, carried)
        for reads in (True, False):
            table = self._reads if reads else self._writes
            for key, offsets in table.items():
                slots, uops, stays = self._about[reads, key]
                distinct = float(len(np.unique(np.concatenate(offsets))))
                if stays is None:
                    self._add_access(distinct * slots, distinct * uops, reads=reads)
                else:
                    counts.entry_slots += distinct * slots / stays
        return counts

    def _add_access(self, slots: float, uops: float, *, reads: bool) -> None:
        if reads:
            self.counts.load_slots += slots
        else:
            self.counts.store_slots += slots
        self.counts.uops += uops

    def _stays(self, offset: Linear) -> float:
        """Over how many runs of the loop around an element stays the same that does not move with
        it.
        """
        runs = 1.0
        for var in self._outer:
            if moves(offset, var):
                break
            runs *= max(1.0, self._nest.trips[var])
        return runs

    def _place(self, place: Place, strip: Lanes | None) -> None:
        store, array = place.store, self._nest.arrays[place.store.tensor]
        lanes = strip or place.lanes
        width = vector_lanes(place, self._nest, lanes, auto=strip is not None)
        copies = place.copies
        if lanes is not None and width == 1:
            copies = (*copies, (lanes.var, lanes.count))
        vector = Lanes(lanes.var, width) if lanes is not None and width > 1 else None
        number = place.share * float(prod(n for _, n in copies))
        # gcc keeps no vector in registers that is wider than one: each result goes through memory.
        is_wide = width * array.itemsize > self._widths.register
        if is_wide and not place.pinned:
            place = replace(place, pinned=True)
        self._operations(store, number, width, array.itemsize, is_wide=is_wide)
        for part in walk(store.value):
            if isinstance(part, Load):
                self._access(part.tensor, part.indices, copies, vector, place, reads=True)
        for index in store.indices:
            for part in walk(index):
                if isinstance(part, Load):
                    self._access(part.tensor, part.indices, copies, vector, place, reads=True)
        if store.reduce is not None:
            self._access(store.tensor, store.indices, copies, vector, place, reads=True)
            self._accumulate(store, copies, number, width * array.itemsize, place)
        elif not any(isinstance(p, Load) and p.tensor == store.tensor for p in walk(store.value)):
            self._begun.add(store.tensor)
        self._updates.append(Update(store, copies, width))
        self._access(store.tensor, store.indices, copies, vector, place, reads=False)

    def _operations(
        self, store: Store, number: float, width: int, itemsize: int, *, is_wide: bool
    ) -> None:
        counts, moving = self.counts, frozenset({self._around} if self._around else ())
        slots = max(1.0, width * itemsize / self._widths.pipe)
        registers = max(1.0, width * itemsize / self._widths.register)
        value = store.value
        plain = list(arithmetic(value))
        fused = _fused(value, store.reduce)
        operations = len([op for op in plain if op in ("simple", "mul")])
        operations += store.reduce is not None
        counts.flops += number * width * (len(plain) + (store.reduce is not None))
        issued = max(0, operations - fused)
        counts.pipe_slots += number * issued * slots
        counts.ideal_slots += number * issued * width * itemsize / self._widths.pipe
        counts.uops += number * issued * registers
        if is_wide:
            self._add_access(number * issued * slots, 0.0, reads=True)
            moved = number * issued * registers
            self._add_access(number * issued * slots, moved, reads=False)
        for op in plain:
            if op in ("div", "sqrt"):
                counts.divide_slots += number * slots
                counts.uops += number * registers
            elif op in FUNCTIONS:
                calls = counts.function_calls
                calls[op] = calls.get(op, 0.0) + number * width
        indices = [*store.indices]
        for part in walk(value):
            if isinstance(part, Load):
                indices += part.indices
        for index in indices:
            counts.integer_ops += number * _division_cost(index, moving)

    def _access(
        self,
        name: str,
        indices: tuple[Expr, ...],
        copies: Copies,
        vector: Lanes | None,
        place: Place,
        *,
        reads: bool,
    ) -> None:
        array = self._nest.arrays[name]
        offset = flat_from_loads(indices, array.shape)
        step = 0 if vector is None or offset is None else offset.factor(vector.var)
        width = vector.count if vector is not None else 1
        apart = {var for var, _ in copies} | ({vector.var} if vector is not None else set())
        if offset is None or step not in (0, 1) or any(offset.hidden(var) for var in apart):
            # One element at a time, and each put into its lane.
            number = place.share * float(prod(n for _, n in copies)) * width
            self._add_access(number, number * (2 if width > 1 else 1), reads=reads)
            return
        size = array.itemsize * (width if step == 1 else 1)
        slots = place.share * max(1.0, size / self._widths.pipe)
        uops = place.share * max(1.0, size / self._widths.register)
        is_moving = self._around is None or place.pinned or moves(offset, self._around)
        stays = None if is_moving else self._stays(offset)
        fixed = reduce(Linear.without, apart, offset).terms
        key = (name, fixed, step, width, is_moving)
        table = self._reads if reads else self._writes
        table.setdefault(key, []).append(_offsets(offset, copies))
        # A load is part of the operation that uses it; only the slot counts.
        self._about[reads, key] = (slots, 0.0 if reads else uops, stays)
        if reads and step == 1:
            self.counts.vector_loads += 1

    def _accumulate(
        self, store: Store, copies: Copies, number: float, size: float, place: Place
    ) -> None:
        """What a reduction hangs on: its own last update, if that is to the same element."""
        counts = self.counts
        target = flat_from_loads(store.indices, self._nest.arrays[store.tensor].shape)
        if self._around is None or target is None or moves(target, self._around):
            return
        distinct = float(len(np.unique(_offsets(target, copies))))
        updates = max(1.0, number / distinct)
        if store.tensor in self._begun:
            counts.fresh_chain += updates
            return
        is_product = isinstance(store.value, Binary) and store.value.op == "mul"
        counts.latency_kind = "fma" if store.reduce == "add" and is_product else "add"
        if any(moves(target, var) for var in self._outer):
            counts.chain_runs = self._stays(target)
        if place.pinned:
            counts.memory_chain = max(counts.memory_chain, updates)
        else:
            counts.accumulator_registers += distinct * max(1.0, size / self._widths.register)
        counts.update_chain = max(counts.update_chain, updates)


def _offsets(offset: Linear, copies: Copies) -> NDArray[np.int64]:
    """The offsets that the copies of an access have."""
    out = np.array([offset.constant], dtype=np.int64)
    for var, count in copies:
        step = offset.factor(var)
        if step:
            out = np.unique(np.add.outer(out, step * np.arange(count, dtype=np.int64)))
    return out


def arithmetic(node: Expr) -> Iterator[str]:
    """The classes of the operations of a value, without those of indices."""
    match node:
        case Load() | Const():
            return
        case Binary("div", _, _) | Binary("floordiv" | "mod", _, _):
            yield "div"
        case Unary("sqrt", _):
            yield "sqrt"
        case Unary(op, _) if op in FUNCTIONS:
            yield op
        case Binary("mul", _, _):
            yield "mul"
        case Binary() | Unary():
            yield "simple"
    for child in children(node):
        yield from arithmetic(child)


def _fused(value: Expr, reduce: str | None) -> int:
    """How many multiplications are done by the addition that uses them."""
    fused = int(reduce == "add" and isinstance(value, Binary) and value.op == "mul")
    for part in _values(value):
        if isinstance(part, Binary) and part.op in ("add", "sub"):
            fused += any(isinstance(x, Binary) and x.op == "mul" for x in (part.left, part.right))
    return fused


def _values(node: Expr) -> Iterator[Expr]:
    """The parts of a value without what is inside indices."""
    yield node
    if not isinstance(node, Load):
        for child in children(node):
            yield from _values(child)


def _division_cost(index: Expr, moving: frozenset[str]) -> float:
    """Integer operations for the divisions and remainders in an index that moves."""
    cost = 0.0
    for part in walk(index):
        divides = isinstance(part, Binary) and part.op in ("floordiv", "mod")
        if divides and mentions(part, *moving):
            cost += SHIFT_OPS if _is_power_of_two(children(part)[1]) else DIVIDE_OPS
    return cost


def _is_power_of_two(node: Expr) -> bool:
    return (
        isinstance(node, Const)
        and int(node.value) > 0
        and not int(node.value) & (int(node.value) - 1)
    )
