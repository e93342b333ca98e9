"""What levels emit, run by the interpreter: every stored element is visited, and found again."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.sparse.format import Diagonal, Inner, Mode, Outer
from kernelwright.env.compiler.sparse.levels.base import Site, StorageError, minus, plus, times
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import from_dense

TEXTS = (
    "dense",
    "csr",
    "csc:int64",
    "dcsr",
    "coo",
    "bcsr(4,3)",
    "ell",
    "ell(9)",
    "ellslots",
    "ellslots(9):int64",
    "nm(4,4)",
    "dia",
    "dense(i) compressed(j-i) offset(j)",
    "hash",
    "dense(i/2) padded(slots)(j/3) dense(i%2) dense(j%3)",
    "dense(j) hashed(16)(i)",
)


def sites(tensor):
    """The site of each level, and the arrays that it declares."""
    form, above, out, declared = tensor.format, 1, [], []
    extents = form.extents(tensor.shape)
    for number, ((kind, _), extent) in enumerate(zip(form.levels, extents, strict=True), start=1):
        positions = kind.check(tensor.arrays[number], above, extent)
        site = Site("A", number, whole(extent), whole(above), whole(positions), form.index_dtype)
        size = kind.positions(site)
        assert size is None or simplify(size) == whole(positions)
        out.append(site)
        declared += [
            Tensor(site.name(array.name), (array.size,), array.dtype, "input")
            for array in kind.arrays(site)
        ]
        above = positions
    declared.append(Tensor("A_vals", (whole(above),), str(tensor.values.dtype), "input"))
    return out, declared


def modes_of(form, coordinates):
    out = {}
    for (_, dimension), coordinate in zip(form.levels, coordinates, strict=True):
        match dimension:
            case Mode(mode):
                out[mode] = coordinate
            case Outer(mode, size):
                out[mode] = times(coordinate, whole(size))
            case Inner(mode, _):
                out[mode] = plus(out[mode], coordinate)
            case Diagonal():
                pass
    return [out[mode] for mode in range(form.order)]


def visits(tensor):
    """Add every element that the levels' code visits into an array of zeros."""
    form = tensor.format
    every, declared = sites(tensor)
    extents = form.extents(tensor.shape)

    def nest(number, parent, coordinates):
        if number > len(every):
            modes = modes_of(form, coordinates)
            body = Store("out", tuple(modes), Load("A_vals", (parent,)), "add")
            for mode, size in zip(modes, tensor.shape, strict=True):
                body = If(Binary("lt", mode, whole(size)), body)
            return body
        kind, site = form.levels[number - 1][0], every[number - 1]
        if (addends := form.addends(number)) is not None:
            diagonal, row = addends
            both = plus(coordinates[diagonal - 1], coordinates[row - 1])
            decided = minus(both, whole(extents[row - 1] - 1))
            site = Site(*(getattr(site, n) for n in site.__slots__[:-1]), decided)
        variable = Var(f"v{number}")
        if kind.iterates == "value":
            position, coordinate = kind.locate(site, parent, variable).position, variable
            inner = nest(number + 1, position, [*coordinates, coordinate])
            return For(variable.name, site.extent, inner)
        position = kind.position(site, parent, variable)
        coordinate = kind.coordinate(site, parent, position)
        inner = nest(number + 1, position, [*coordinates, coordinate])
        present = kind.present(site, parent, position)
        inner = inner if present is None else If(present, inner)
        return For(variable.name, kind.count(site, parent), inner)

    shape = tuple(whole(n) for n in tensor.shape)
    names = [f"z{mode}" for mode in range(form.order)]
    zero = Store("out", tuple(map(Var, names)), Const(0.0, "float64"))
    for name, size in reversed(list(zip(names, shape, strict=True))):
        zero = For(name, size, zero)
    out = Tensor("out", shape, "float64", "output")
    body = Block((zero, nest(1, whole(0), [])))
    return Procedure("visit", (), (*declared, out), body)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("shape", [(6, 9), (1, 1), (4, 0), (0, 4), (5, 3)])
def test_every_element_is_visited_once(text, shape):
    rng = np.random.default_rng(5)
    array = rng.random(shape) * (rng.random(shape) < 0.4)
    if shape == (4, 0) and text in ("ell(9)", "ellslots(9):int64"):
        with pytest.raises(StorageError, match="expected a coordinate to pad 36 places with"):
            from_dense(parse_format(text), array)
        return
    tensor = from_dense(parse_format(text), array)
    procedure = visits(tensor)
    verify(procedure)
    got = interpret(procedure, tensor.arguments("A"))["out"]
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("text", ["hash1", "hashed(64)(i)", "dense1", "hash1:int64"])
def test_coordinates_are_located(text):
    """Each coordinate of the dimension: where it is stored, or that it is not."""
    extent = 40
    array = np.zeros(extent)
    array[[0, 3, 8, 16, 17, 24, 32, 39]] = np.arange(1.0, 9.0)
    tensor = from_dense(parse_format(text), array)
    every, declared = sites(tensor)
    kind = tensor.format.levels[0][0]
    found = kind.locate(every[0], whole(0), Var("c"))
    value = Store("out", (Var("c"),), Load("A_vals", (found.position,)))
    body = Block(
        (
            Store("out", (Var("c"),), Const(0.0, "float64")),
            *found.before,
            value if found.found is None else If(found.found, value),
        )
    )
    for name in found.scalars:
        body = Allocate(Tensor(name, (), "int64"), body)
    out = Tensor("out", (whole(extent),), "float64", "output")
    procedure = Procedure("locate", (), (*declared, out), For("c", whole(extent), body))
    verify(procedure)
    got = interpret(procedure, tensor.arguments("A"))["out"]
    np.testing.assert_array_equal(got, array)


def test_a_coordinate_that_is_not_there_is_inserted_where_it_was_looked_for():
    """Emitted insertion and NumPy's agree: what is inserted, one after another, is well formed."""
    form = parse_format("hashed(16)(i)")
    kind = form.levels[0][0]
    coordinates = np.array([5, 21, 37, 5, 53, 0, 21], np.int32)
    site = Site("A", 1, whole(64), whole(1), whole(16), "int32")
    given = Cast("int64", Load("given", (Var("k"),)))
    found = kind.locate(site, whole(0), given)
    insert = Block((*found.before, Store("A1_crd", (found.position,), Load("given", (Var("k"),)))))
    body = Allocate(Tensor("A1_slot", (), "int64"), insert)
    clear = For("p", whole(16), Store("A1_crd", (Var("p"),), Const(-1, "int32")))
    procedure = Procedure(
        "insert",
        (),
        (
            Tensor("given", (whole(7),), "int32", "input"),
            Tensor("A1_crd", (whole(16),), "int32", "output"),
        ),
        Block((clear, For("k", whole(7), body))),
    )
    verify(procedure)
    crd = interpret(procedure, {"given": coordinates})["A1_crd"]
    assert kind.check({"crd": crd}, 1, 64) == 16
    assert sorted(crd[crd >= 0].tolist()) == [0, 5, 21, 37, 53]


def test_an_offset_coordinate_is_the_one_of_its_diagonal():
    kind = parse_format("dia").levels[2][0]
    site = Site("A", 3, whole(4), whole(8), whole(8), "int32", whole(2))
    located = kind.locate(site, whole(5), whole(3))
    assert located.position == whole(5)
    assert simplify(located.found) == Const(False, "bool")
    assert simplify(kind.locate(site, whole(5), whole(2)).found) == Const(True, "bool")
