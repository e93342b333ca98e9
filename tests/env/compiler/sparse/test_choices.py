"""Tensors that are there in several formats, of which a program reads one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Tensor
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.build import ordered, program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import from_dense

ROWS, COLS = 7, 10
PREFIXES = {
    "csr": "A_csr",
    "csc": "A_csc",
    "dcsr": "A_dcsr",
    "coo": "A_coo",
    "bcsr(4,3)": "A_bcsr",
    "ell": "A_ell",
    "ellslots": "A_ellslots",
    "dia": "A_dia",
    "dense": "A_dense",
}
FORMATS = {text: parse_format(text, 2) for text in PREFIXES}


@pytest.fixture
def matrix():
    rng = np.random.default_rng(3)
    out = rng.standard_normal((ROWS, COLS)) * (rng.random((ROWS, COLS)) < 0.3)
    out[2] = 0
    return out


def copies(matrix):
    """The arguments of all copies, and the numbers of positions."""
    arrays, counts = {"A_dense": matrix}, {}
    for text, prefix in PREFIXES.items():
        if text != "dense":
            own = from_dense(FORMATS[text], matrix).arguments(prefix)
            arrays |= own
            counts |= {k.removesuffix("_crd"): v.size for k, v in own.items() if k.endswith("_crd")}
    return arrays, counts


def offered(matrix):
    arrays, counts = copies(matrix)
    made = program("y(i) = A(i,j) * x(j)", {"A": "csr"}, sizes={"i": ROWS, "j": COLS})
    return arrays, replace(
        made,
        extents=(),
        counts=tuple((level, whole(n)) for level, n in counts.items()),
        choices=(("A", tuple((FORMATS[text], prefix) for text, prefix in PREFIXES.items())),),
    )


def in_format(made, text):
    formats = tuple((n, FORMATS[text] if n == "A" else f) for n, f in made.formats)
    return ordered(replace(made, formats=formats))


@pytest.mark.parametrize("text", FORMATS)
def test_the_arrays_of_the_chosen_format_are_read(text, matrix):
    arrays, made = offered(matrix)
    procedure = lower(in_format(made, text))
    names = [tensor.name for tensor in procedure.tensors]
    assert names[-2:] == ["x", "y"]
    assert all(name.startswith(PREFIXES[text]) for name in names[:-2])
    x = np.arange(1.0, COLS + 1)
    inputs = {name: arrays[name] for name in names[:-2]} | {"x": x}
    np.testing.assert_allclose(interpret(procedure, inputs, {})["y"], matrix @ x)


def test_an_interface_keeps_the_copies_that_are_not_read(matrix):
    arrays, made = offered(matrix)
    everything = tuple(
        Tensor(name, tuple(map(whole, array.shape)), str(array.dtype), "input")
        for name, array in arrays.items()
    )
    x, y = made.arguments()[-2:]
    whole_call = replace(made, interface=(y, x, *everything))
    for text in FORMATS:
        procedure = lower(in_format(whole_call, text))
        assert procedure.tensors == (y, x, *everything)


def test_an_interface_without_an_array_that_is_read_is_refused(matrix):
    _, made = offered(matrix)
    with pytest.raises(CompilerError, match="A_csr2_pos"):
        lower(replace(made, interface=made.arguments()[1:]))


def test_a_tensor_without_choices_has_its_own_name():
    made = program("y(i) = A(i,j) * x(j)", {"A": "csr"})
    assert (made.prefix("A"), made.prefix("y")) == ("A", "y")
