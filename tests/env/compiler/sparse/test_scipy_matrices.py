"""Matrices of SciPy in and out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.named import format_text, parse_format
from kernelwright.env.compiler.sparse.scipy_matrices import from_scipy, to_scipy
from kernelwright.env.compiler.sparse.storage import from_dense

KINDS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
FORMATS = ("csr", "csc", "dcsr", "dcsc", "coo", "bcsr(2,3)", "ell", "ellslots", "dia", "hash")
ARRAY = np.random.default_rng(2).integers(1, 5, (6, 9)) * (
    np.random.default_rng(3).random((6, 9)) < 0.4
).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_matrices_of_every_kind_come_in_and_go_out(kind, text, dtype):
    matrix = sparse.coo_array(ARRAY).asformat(kind)
    tensor = from_scipy(matrix, parse_format(f"{text}:{dtype}"))
    np.testing.assert_array_equal(tensor.to_dense(), ARRAY)
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), ARRAY)


@pytest.mark.parametrize(
    ("kind", "text", "back"),
    [
        ("csr", "csr", "csr"),
        ("csc", "csc", "csc"),
        ("coo", "coo", "coo"),
        ("dia", "dia", "dia"),
        ("bsr", "bcsr(3,3)", "bsr"),
        ("lil", "csr", "csr"),
    ],
)
def test_a_kind_has_its_own_format(kind, text, back):
    coordinates = sparse.coo_array(ARRAY)
    matrix = coordinates.tobsr((3, 3)) if kind == "bsr" else coordinates.asformat(kind)
    tensor = from_scipy(matrix)
    assert format_text(tensor.format) == text
    assert to_scipy(tensor).format == back


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_empty_matrices(shape):
    for kind in ("csr", "csc", "coo"):
        tensor = from_scipy(sparse.coo_array(shape).asformat(kind))
        assert to_scipy(tensor).shape == shape
        assert tensor.stored == 0


def test_arrays_in_order_are_shared():
    matrix = sparse.csr_array(ARRAY)
    tensor = from_scipy(matrix)
    assert np.shares_memory(tensor.values, matrix.data)
    assert np.shares_memory(tensor.arrays[2]["crd"], matrix.indices)
    assert np.shares_memory(to_scipy(tensor).data, matrix.data)


def test_unsorted_rows_are_sorted():
    matrix = sparse.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), (1, 3))
    tensor = from_scipy(matrix)
    assert tensor.arrays[2]["crd"].tolist() == [0, 2]
    assert tensor.values.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_duplicates_are_refused_or_summed(kind):
    if kind == "coo":
        matrix = sparse.coo_array((np.ones(2), (np.array([1, 1]), np.array([1, 1]))), (2, 2))
    else:
        parts = np.ones(2), np.array([1, 1]), np.array([0, 0, 2])
        matrix = getattr(sparse, f"{kind}_array")(parts, (2, 2))
    with pytest.raises(StorageError, match=r"every coordinate once, found \(1, 1\) again"):
        from_scipy(matrix)
    assert from_scipy(matrix, duplicates="sum").to_dense().tolist() == [[0, 0], [0, 2]]


@pytest.mark.parametrize("text", ["csr", "coo", "ell"])
@pytest.mark.parametrize(
    ("pos", "crd", "message"),
    [
        ([0, 1, 90], [0, 1], r"pos\[2\]: expected at most 2, found 90"),
        ([0, 2, 1], [1, 0], r"pos\[2\]: expected at least 2, found 1"),
        ([0, 1, 2], [0, 90], r"crd\[1\]: expected 0 to 2, found 90"),
        ([0, 2, 2], [1, -90], r"crd\[1\]: expected 0 to 2, found -90"),
    ],
)
def test_malformed_matrices_are_refused(text, pos, crd, message):
    matrix = sparse.csr_array(np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]))
    matrix.indptr, matrix.indices = np.array(pos, np.int32), np.array(crd, np.int32)
    with pytest.raises(StorageError, match=message):
        from_scipy(matrix, parse_format(text))


def test_only_matrices_go_out():
    with pytest.raises(StorageError, match="expected a matrix of two modes, found 1"):
        to_scipy(from_dense(parse_format("sv"), np.ones(3)))
