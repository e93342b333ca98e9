"""Loops over the stored elements of one tensor, in the order of storage, and what a format says of
coordinates in code: `Format.split` and `Format.joined` as LoopIR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, For, If, Load, Stmt, Tensor, Var
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.format import (
    LETTERS,
    Diagonal,
    Format,
    Inner,
    Mode,
    Outer,
)
from kernelwright.env.compiler.sparse.levels.base import Site, minus, plus, times
from kernelwright.env.compiler.sparse.minted import initialised
from kernelwright.env.compiler.sparse.storage import SparseTensor


def size_name(mode: int) -> str:
    """The extent that is the size of a mode: ``i_size``."""
    return f"{LETTERS[mode]}_size"


def sites(form: Format, tensor: str) -> tuple[Site, ...]:
    """The levels of a tensor, over the extents ``A2_extent`` and ``A2_size`` (positions)."""
    out: list[Site] = []
    above: Expr = whole(1)
    for number, (kind, dimension) in enumerate(form.levels, start=1):
        extent: Expr = Var(f"{tensor}{number}_extent")
        if isinstance(dimension, Inner):
            extent = whole(dimension.size)
        held = Var(f"{tensor}{number}_size")
        site = Site(tensor, number, extent, above, held, form.index_dtype)
        out.append(site)
        above = simplify(kind.positions(site) or held)
    return tuple(out)


def arguments(tensor: SparseTensor, name: str) -> tuple[tuple[Tensor, ...], dict[str, int]]:
    """The arrays of a tensor as inputs, and the values of the extents of its `sites`."""
    form, declared, values = tensor.format, [], {}
    above: Expr = whole(1)
    extents = form.extents(tensor.shape)
    for (kind, _), site, extent in zip(form.levels, sites(form, name), extents, strict=True):
        values[f"{name}{site.number}_extent"] = extent
        if (crd := tensor.arrays[site.number].get("crd")) is not None:
            values[f"{name}{site.number}_size"] = int(crd.size)
        for array in kind.arrays(site):
            facts = ("ascending",) if array.ascending else ()
            shape = (simplify(array.size),)
            declared.append(Tensor(site.name(array.name), shape, array.dtype, "input", facts=facts))
        above = simplify(kind.positions(site) or site.positions)
    dtype = str(tensor.values.dtype)
    declared.append(Tensor(f"{name}_vals", (above,), dtype, "input"))
    return tuple(declared), values


def split(form: Format, modes: Sequence[Expr]) -> list[Expr]:
    """The coordinates of each level, from those of the modes."""
    out: list[Expr] = []
    for _, dimension in form.levels:
        match dimension:
            case Mode(mode):
                out.append(modes[mode])
            case Outer(mode, size):
                out.append(Binary("floordiv", modes[mode], whole(size)))
            case Inner(mode, size):
                out.append(Binary("mod", modes[mode], whole(size)))
            case Diagonal(row, column):
                lowest = minus(Var(size_name(row)), whole(1))
                out.append(plus(minus(modes[column], modes[row]), lowest))
    return out


def joined(form: Format, levels: Sequence[Expr]) -> list[Expr]:
    """The coordinates of the modes, from those of each level."""
    out: dict[int, Expr] = {}
    for (_, dimension), coordinate in zip(form.levels, levels, strict=True):
        match dimension:
            case Mode(mode):
                out[mode] = coordinate
            case Outer(mode, size):
                out[mode] = times(coordinate, whole(size))
            case Inner(mode, _):
                out[mode] = plus(out[mode], coordinate)
            case Diagonal():
                pass  # decided by its row and column
    return [out[mode] for mode in range(form.order)]


def over_elements(
    form: Format, tensor: str, dtype: str, body: Callable[[list[Expr], Expr], Stmt]
) -> Stmt:
    """``body`` at every stored element, of which it is given the modes' coordinates and the value;
    padding is left out, and zeros where they fill blocks or diagonals.
    """
    every = sites(form, tensor)

    def leaf(position: Expr, coordinates: list[Expr]) -> Stmt:
        modes, value = joined(form, coordinates), Load(f"{tensor}_vals", (position,))
        out = body(modes, value)
        if form.fills:
            zero = Const(False if dtype == "bool" else 0, dtype)
            if dtype.startswith("float"):
                zero = Const(0.0, dtype)
            out = If(Binary("ne", value, zero), out)
        for _, dimension in form.levels:
            if isinstance(dimension, Outer):
                within = Binary("lt", modes[dimension.mode], Var(size_name(dimension.mode)))
                out = If(within, out)
        return out

    def nest(number: int, parent: Expr, coordinates: list[Expr]) -> Stmt:
        if number > len(every):
            return leaf(parent, coordinates)
        kind, site = form.levels[number - 1][0], every[number - 1]
        if (addends := form.addends(number)) is not None:
            both = plus(coordinates[addends[0] - 1], coordinates[addends[1] - 1])
            rows = every[addends[1] - 1].extent
            site = replace(site, computed=minus(both, minus(rows, whole(1))))
        k = Var(f"k{number}")
        if kind.iterates == "value":
            inner = nest(number + 1, kind.locate(site, parent, k).position, [*coordinates, k])
            return For(k.name, site.extent, inner)
        place, at = Load(f"p{number}", ()), Load(f"c{number}", ())
        inner = nest(number + 1, place, [*coordinates, at])
        inner = initialised(at.tensor, kind.coordinate(site, parent, place), inner)
        present = kind.present(site, parent, place)
        inner = inner if present is None else If(present, inner)
        inner = initialised(place.tensor, kind.position(site, parent, k), inner)
        return For(k.name, kind.count(site, parent), inner)

    return nest(1, whole(0), [])
