"""Conversion between any two formats by generated loops (Chou, Kjolstad and Amarasinghe, Automatic
Generation of Efficient Sparse Tensor Format Conversion Routines, PLDI 2020).

The source is visited once to count and once to list its elements by the coordinates of the target's
levels, in the order of the first sort that is needed (`sorting`); other sorts follow, and then each
level of the target is assembled from the sorted list (`Level.inserted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.dtypes import DTYPES
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    substitute,
)
from kernelwright.env.compiler.ir.queries import expressions, tensors_of, variables_of, writes
from kernelwright.env.compiler.ir.simplify import simplify_statement, whole
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.given import checked_shape, kinds_and_extents
from kernelwright.env.compiler.sparse.levels.arrays import checked_positions
from kernelwright.env.compiler.sparse.levels.base import (
    Counted,
    Elements,
    Site,
    StorageError,
    minus,
    one_after,
)
from kernelwright.env.compiler.sparse.minted import initialised, scalar
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.run import Runner
from kernelwright.env.compiler.sparse.sorting import Pass, passes
from kernelwright.env.compiler.sparse.storage import SparseTensor
from kernelwright.env.compiler.sparse.stored import (
    arguments,
    over_elements,
    size_name,
    split,
)

E, N = Var("e"), Var("n")


def converted(tensor: SparseTensor, target: Format, runner: Runner = interpret) -> SparseTensor:
    """What `SparseTensor.convert` gives, array by array, by loops that a runner runs.

    Raises:
        StorageError: elements that the target cannot hold.
        SparseError: values of a dtype that loops have not.
    """
    dtype = str(tensor.values.dtype)
    if dtype not in DTYPES:
        raise SparseError(f"values: expected a dtype among {', '.join(DTYPES)}, found {dtype}")
    shape = checked_shape(target, tensor.shape)
    found = _listed(tensor, target, runner)
    if tensor.format.keeps_duplicates and not target.keeps_duplicates:
        found.check_distinct(target)
    arrays: dict[int, dict[str, NDArray[Any]]] = {}
    parent: Expr = whole(0)
    above = 1
    for number, (kind, extent) in enumerate(kinds_and_extents(target, shape), start=1):
        where = f"level {number} ({kind.text})"
        try:
            checked_positions(kind.room(above, extent), target.index_dtype)
            arrays[number], parent, above = found.level(target, number, parent, above, extent)
            checked_positions(above, target.index_dtype)
        except StorageError as error:
            raise StorageError(f"{where}: {error}") from None
        if not kind.ascends and _stores_below(target, number):
            found.sort_by_places(parent, above)
    return SparseTensor(target, shape, arrays, found.values_at(parent, above, target))


def _stores_below(form: Format, number: int) -> bool:
    site = Site("", 1, whole(1), whole(1), whole(1), form.index_dtype)
    return any(kind.arrays(site) for kind, _ in form.levels[number:])


@dataclass(slots=True)
class _List:
    """Elements in order: an array of coordinates a level, values, and positions in levels that are
    assembled already.
    """

    arrays: dict[str, NDArray[Any]]
    count: int
    runner: Runner
    levels: int

    def run(
        self, name: str, body: Stmt, outputs: Sequence[Tensor], **sizes: int
    ) -> Mapping[str, NDArray[Any]]:
        """Loops over the list, with all of its arrays that they read."""
        inputs = [Tensor(k, (N,), str(a.dtype), "input") for k, a in self.arrays.items()]
        every = {**sizes, "n": self.count}
        return _run(self.runner, name, body, (*inputs, *outputs), self.arrays, every)

    def key(self, number: int) -> Expr:
        """The coordinate of level ``number`` (from 1) of the element ``e``."""
        return Cast("int64", Load(f"key{number}", (E,)))

    def moved(self, digit: Expr, starts: NDArray[Any]) -> None:
        """A stable sort by a digit, of which each value's first place is given."""
        at = Load("at", ())
        names = list(self.arrays)
        moves = [Store(f"{k}_to", (at,), Load(k, (E,))) for k in names]
        radix = Var("radix")
        body = _scattering(For("e", N, _placed(digit, moves)), radix)
        outputs = [Tensor(f"{k}_to", (N,), str(self.arrays[k].dtype), "output") for k in names]
        given = Tensor("starts", (radix,), "int64", "input")
        inputs = [Tensor(k, (N,), str(self.arrays[k].dtype), "input") for k in names]
        every = {"n": self.count, "radix": starts.size}
        arrays = {**self.arrays, "starts": starts}
        out = _run(self.runner, "sort", body, (*inputs, given, *outputs), arrays, every)
        self.arrays = {k: out[f"{k}_to"] for k in names}

    def sort_by_places(self, place: Expr, positions: int) -> None:
        """Bring elements into the order of their positions."""
        radix = Var("radix")
        count = For("e", N, Store("starts", (place,), whole(1), "add"))
        body = Block((_zeros("starts", radix), count, _prefix("starts", radix)))
        out = [Tensor("starts", (radix,), "int64", "output")]
        starts = self.run("places", body, out, radix=positions)["starts"]
        self.moved(place, starts)

    def check_distinct(self, target: Format) -> None:
        """Refuse elements of the same coordinates."""
        same: Expr = Const(True, "bool")
        for number in range(1, self.levels + 1):
            key = self.key(number)
            before = substitute(key, {"e": minus(E, whole(1))})
            same = Binary("and", same, Binary("eq", key, before))
        again = If(Binary("gt", E, whole(0)), If(same, Store("first", (whole(0),), E, "min")))
        body = Block((Store("first", (whole(0),), N), For("e", N, again)))
        out = self.run("again", body, [Tensor("first", (whole(1),), "int64", "output")])
        at = int(out["first"][0])
        if at < self.count:
            keys = [self.arrays[f"key{n}"][at : at + 1] for n in range(1, self.levels + 1)]
            place = ", ".join(str(int(c)) for c in target.joined(keys)[:, 0])
            raise StorageError(
                f"expected every coordinate once, found ({place}) again; "
                'duplicates="sum" adds them up'
            )

    def level(
        self, form: Format, number: int, parent: Expr, above: int, extent: int
    ) -> tuple[dict[str, NDArray[Any]], Expr, int]:
        """The arrays of a level, the position of the element ``e`` in it, and how many positions
        there are.
        """
        kind = form.levels[number - 1][0]
        site = Site("B", number, Var("extent"), Var("parents"), Var("positions"), form.index_dtype)
        own = kind.arrays(site)
        sizes = {"extent": extent, "parents": above}
        counted = Counted(self.count, 0, 0, 0, 0)
        node: Expr = E
        single = number == len(form.levels) or not kind.unique
        if own:
            counted, node = self._counted(number, parent, single, above)
        positions = kind.planned(counted, above, extent)
        for array in own:
            checked_positions(positions, form.index_dtype)
            self._check_held(array.name, array.dtype, number, counted, extent)
        key = self.arrays[f"key{number}"]
        crd = next((a.dtype for a in own if a.name == "crd"), None)
        listed = single and str(key.dtype) == crd
        elements = Elements(N, parent, self.key(number), node, "lengths", listed)
        done = kind.inserted(site, elements)
        outputs = [
            Tensor(site.name(a.name), (a.size,), a.dtype, "output")
            for a in own
            if writes(done.body, site.name(a.name))
        ]
        if done.places:
            outputs.append(Tensor(done.places, (N,), "int64", "output"))
        arrays: dict[str, NDArray[Any]] = {a.name: key for a in own}
        if outputs:
            found = self._assembled(done.body, outputs, {**sizes, "positions": positions})
            arrays |= {a.name: found[site.name(a.name)] for a in own if site.name(a.name) in found}
            if done.places:
                self.arrays[done.places] = found[done.places]
        self.arrays.pop("lengths", None)
        known = {"extent": extent, "parents": above, "positions": positions}
        values: dict[str, Expr] = {name: whole(size) for name, size in known.items()}
        return arrays, substitute(done.position, values), positions

    def _assembled(
        self, body: Stmt, outputs: list[Tensor], sizes: Mapping[str, int]
    ) -> Mapping[str, NDArray[Any]]:
        inputs = [
            Tensor(k, (Var("parents") if k == "lengths" else N,), str(a.dtype), "input")
            for k, a in self.arrays.items()
        ]
        every = {**sizes, "n": self.count}
        return _run(self.runner, "assemble", body, (*inputs, *outputs), self.arrays, every)

    def _counted(self, number: int, parent: Expr, single: bool, above: int) -> tuple[Counted, Expr]:
        """How many nodes a level has and below which parents; which one each element is at."""
        nodes, fullest, p = Load("nodes", ()), Load("fullest", ()), Var("p")
        length = Load("lengths", (p,))
        new = [
            Store("lengths", (parent,), whole(1), "add"),
            Store("nodes", (), whole(1), "add"),
        ]
        each: Stmt = Block(tuple(new))
        outputs = [
            Tensor("lengths", (Var("parents"),), "int64", "output"),
            Tensor("told", (whole(4),), "int64", "output"),
        ]
        name = f"node{number}"
        if not single:
            before: dict[str, Expr] = {"e": minus(E, whole(1))}
            key = self.key(number)
            starts: Expr = Binary("eq", E, whole(0))
            for part in (parent, key):
                starts = Binary("or", starts, Binary("ne", part, substitute(part, before)))
            each = Block((If(starts, each), Store(name, (E,), minus(nodes, whole(1)))))
            outputs.append(Tensor(name, (N,), "int64", "output"))
        more = Block((Store("fullest", (), length), Store("at", (), p)))
        body: Stmt = Block(
            (
                *(Store(k, (), whole(0)) for k in ("nodes", "fullest", "at", "occupied")),
                _zeros("lengths", Var("parents")),
                For("e", N, each),
                For(
                    "p",
                    Var("parents"),
                    Block(
                        (
                            If(Binary("gt", length, fullest), more),
                            If(
                                Binary("gt", length, whole(0)),
                                Store("occupied", (), whole(1), "add"),
                            ),
                        )
                    ),
                ),
                *(
                    Store("told", (whole(k),), Load(scalar_name, ()))
                    for k, scalar_name in enumerate(("nodes", "occupied", "fullest", "at"))
                ),
            )
        )
        for scalar_name in ("nodes", "fullest", "at", "occupied"):
            body = Allocate(scalar(scalar_name), body)
        out = self.run("nodes_of", body, outputs, parents=above)
        self.arrays["lengths"] = out["lengths"]
        counted = Counted(self.count, *(int(n) for n in out["told"]))
        if single:
            return counted, E
        self.arrays[name] = out[name]
        return counted, Load(name, (E,))

    def _check_held(
        self, name: str, dtype: str, number: int, counted: Counted, extent: int
    ) -> None:
        """That a level's array can hold what is to be written to it."""
        most = int(np.iinfo(np.dtype(dtype)).max)
        largest = {"len": counted.fullest, "pos": counted.nodes}.get(name, 0)
        if name == "crd" and extent - 1 > most:
            key = self.key(number)
            store = For("e", N, Store("most", (whole(0),), key, "max"))
            body = Block((Store("most", (whole(0),), whole(0)), store))
            out = [Tensor("most", (whole(1),), "int64", "output")]
            largest = int(self.run("largest", body, out)["most"][0])
        if largest > most:
            raise StorageError(
                f"{name}: expected whole numbers that {dtype} holds, found {largest}"
            )

    def values_at(self, place: Expr, positions: int, form: Format) -> NDArray[Any]:
        """The values at their positions, zeros elsewhere."""
        values = self.arrays["vals"]
        if place == E and positions == self.count:
            return values
        size, dtype = Var("positions"), str(values.dtype)
        store = For("e", N, Store("out", (place,), Load("vals", (E,))))
        zeros = For("z", size, Store("out", (Var("z"),), _zero(dtype)))
        out = [Tensor("out", (size,), dtype, "output")]
        return self.run("values", Block((zeros, store)), out, positions=positions)["out"]


def _zero(dtype: str) -> Const:
    if dtype == "bool":
        return Const(False, dtype)
    return Const(0.0 if dtype.startswith("float") else 0, dtype)


def _listed(tensor: SparseTensor, target: Format, runner: Runner) -> _List:
    """The stored elements by the target's coordinates, sorted."""
    form, dtype = tensor.format, str(tensor.values.dtype)
    declared, sizes = arguments(tensor, "A")
    sizes |= {size_name(mode): n for mode, n in enumerate(tensor.shape)}
    sorts = passes(form, target, tensor.shape)
    sizes |= {f"radix{q}": each.radix for q, each in enumerate(sorts)}
    counts = _histograms(tensor, target, sorts, runner, declared, sizes)
    count = int(counts["count"][0])
    at = Load("at", ())
    keys = _key_dtypes(target, tensor.shape)

    def element(modes: list[Expr], value: Expr) -> Stmt:
        levels = split(target, modes)
        moves: list[Stmt] = [
            Store(f"key{number}", (at,), Cast(key, coordinate))
            for number, (key, coordinate) in enumerate(zip(keys, levels, strict=True), start=1)
        ]
        moves.append(Store("vals", (at,), value))
        if not sorts:
            return _placed(whole(0), moves)
        return _placed(sorts[0].digit(levels[sorts[0].level], Var("radix0")), moves)

    radix = Var("radix0") if sorts else whole(1)
    body = _scattering(over_elements(form, "A", dtype, element), radix)
    outputs = [Tensor(f"key{n}", (N,), key, "output") for n, key in enumerate(keys, start=1)]
    outputs.append(Tensor("vals", (N,), dtype, "output"))
    starts = counts["starts0"] if sorts else np.zeros(1, np.int64)
    every = (*declared, Tensor("starts", (radix,), "int64", "input"), *outputs)
    given = {**tensor.arguments("A"), "starts": starts}
    arrays = _run(runner, "list_elements", body, every, given, {**sizes, "n": count})
    found = _List(dict(arrays), count, runner, len(keys))
    for q, each in enumerate(sorts[1:], start=1):
        digit = each.digit(found.key(each.level + 1), Var("radix"))
        found.moved(digit, counts[f"starts{q}"])
    return found


def _histograms(
    tensor: SparseTensor,
    target: Format,
    sorts: Sequence[Pass],
    runner: Runner,
    declared: Sequence[Tensor],
    sizes: Mapping[str, int],
) -> Mapping[str, NDArray[Any]]:
    """How many elements there are, and where those of each digit begin in each of the sorts: all
    histograms in one pass.
    """

    def element(modes: list[Expr], value: Expr) -> Stmt:
        levels = split(target, modes)
        tallies: list[Stmt] = [Store("count", (whole(0),), whole(1), "add")]
        for q, each in enumerate(sorts):
            digit = each.digit(levels[each.level], Var(f"radix{q}"))
            tallies.append(Store(f"starts{q}", (digit,), whole(1), "add"))
        return Block(tuple(tallies))

    names = [f"starts{q}" for q in range(len(sorts))]
    radices = [Var(f"radix{q}") for q in range(len(sorts))]
    body = Block(
        (
            Store("count", (whole(0),), whole(0)),
            *(_zeros(k, r) for k, r in zip(names, radices, strict=True)),
            over_elements(tensor.format, "A", str(tensor.values.dtype), element),
            *(_prefix(k, r) for k, r in zip(names, radices, strict=True)),
        )
    )
    outputs = [Tensor(k, (r,), "int64", "output") for k, r in zip(names, radices, strict=True)]
    outputs.append(Tensor("count", (whole(1),), "int64", "output"))
    return _run(runner, "count_elements", body, (*declared, *outputs), tensor.arguments("A"), sizes)


def _key_dtypes(form: Format, shape: Sequence[int]) -> list[str]:
    """The dtype of each level's coordinates in the list: its ``crd``'s where that holds them."""
    out = []
    for number, (kind, extent) in enumerate(kinds_and_extents(form, tuple(shape)), start=1):
        site = Site("", number, whole(1), whole(1), whole(1), form.index_dtype)
        crd = [a.dtype for a in kind.arrays(site) if a.name == "crd"]
        wanted = crd[0] if crd else "int32"
        out.append(wanted if extent - 1 <= np.iinfo(np.dtype(wanted)).max else "int64")
    return out


def _zeros(array: str, size: Expr) -> Stmt:
    z = Var(f"z_{array}")
    return For(z.name, size, Store(array, (z,), whole(0)))


def _prefix(array: str, size: Expr) -> Stmt:
    """How many come before each, in the place of how many there are."""
    d, total, mine = Var(f"d_{array}"), f"total_{array}", f"mine_{array}"
    step = Block(
        (
            Store(array, (d,), Load(total, ())),
            Store(total, (), Load(mine, ()), "add"),
        )
    )
    return initialised(
        total, whole(0), For(d.name, size, initialised(mine, Load(array, (d,)), step))
    )


def _placed(digit: Expr, moves: Sequence[Stmt]) -> Stmt:
    """Write an element to the next place of its digit."""
    step = Store("next", (digit,), one_after(Load("at", ())))
    return initialised("at", Load("next", (digit,)), Block((*moves, step)))


def _scattering(body: Stmt, radix: Expr) -> Stmt:
    """Around elements that are placed: the next place of each digit."""
    copy = For("r", radix, Store("next", (Var("r"),), Load("starts", (Var("r"),))))
    heap = Tensor("next", (radix,), "int64", "temporary", "heap")
    return Allocate(heap, Block((copy, body)))


def _run(
    runner: Runner,
    name: str,
    body: Stmt,
    tensors: Sequence[Tensor],
    arrays: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
) -> Mapping[str, NDArray[Any]]:
    """Run loops with those of the arrays and extents that they mention."""
    body = simplify_statement(body)
    used = tensors_of(body)
    declared = tuple(t for t in tensors if t.role == "output" or t.name in used)
    names = {v for part in expressions(body) for v in variables_of(part)}
    names |= {v for t in declared for extent in t.shape for v in variables_of(extent)}
    extents = tuple(k for k in sizes if k in names)
    procedure = Procedure(name, extents, declared, body)
    given = {t.name: arrays[t.name] for t in declared if t.role == "input"}
    return runner(procedure, given, {k: sizes[k] for k in extents})
