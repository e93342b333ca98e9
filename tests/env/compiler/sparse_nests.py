"""Sparse statements as procedures, with operands for them, and how they run after directives."""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.run import evaluate
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense

SPMV = "y(i) = A(i,j) * x(j)"
SPMM = "C(i,j) = A(i,k) * B(k,j)"
SDDMM = "C(i,j) = A(i,j) * B(i,k) * D(k,j)"
MTTKRP = "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)"
SUM = "C(i,j) = A(i,j) + B(i,j)"
SIZES = {"i": 5, "j": 6, "k": 4, "r": 3}


def spmv(form="csr"):
    return lower(program(SPMV, {"A": form}))


def spmm(form="csr"):
    return lower(program(SPMM, {"A": form}))


def sddmm(form="csr"):
    return lower(program(SDDMM, {"A": form}, structure="A"))


def mttkrp():
    return lower(program(MTTKRP, {"T": "csf"}))


def added():
    """The sum of two matrices by rows."""
    return lower(program(SUM, dict.fromkeys("ABC", "csr")))


def numbers(shape, density, rng):
    """Small whole numbers, some of them there; one row is empty, another full."""
    out = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(np.float64)
    if len(shape) > 1 and shape[0] > 3 and density < 1:
        out[2], out[3] = 0, 3
    return out


def operands(statement, formats, seed=0, density=0.4, **sizes):
    """Operands by name: sparse in the formats given, else dense."""
    rng, known = np.random.default_rng(seed), SIZES | sizes
    out = {}
    for access in program(statement, formats).accesses[1:]:
        shape = tuple(known[index] for index in access.indices)
        if access.tensor in formats:
            form = parse_format(formats[access.tensor], len(shape))
            out[access.tensor] = from_dense(form, numbers(shape, density, rng))
        else:
            out[access.tensor] = numbers(shape, 1, rng)
    return out


def scheduled(text):
    """The change of a program by the front end's directives."""

    def change(made):
        return apply_trace(lower(made), parse_trace(text)).origin

    return change


def run(statement, given, text="", after="", runner=None, **options):
    """The result after directives on the statement, then on its loops."""

    def then(procedure, inputs, extents):
        trace = parse_trace(after)
        if runner is None:
            return interpret(apply_trace(procedure, trace), inputs, extents)
        return compile_procedure(procedure, trace, cache=runner)(inputs, extents)

    return evaluate(statement, given, change=scheduled(text), runner=then, **options)


def assert_same(one, other):
    """Equal, element by element and in what is stored."""
    if not isinstance(one, SparseTensor):
        np.testing.assert_array_equal(one, other)
        return
    np.testing.assert_array_equal(one.to_dense(), other.to_dense())
    for level, arrays in one.arrays.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, other.arrays[level][name])
