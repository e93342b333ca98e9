"""What is given to the front end: by known names, as numbers, as text, and within its limits."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.ir.nodes import Const
from kernelwright.env.compiler.sparse.build import gathered, program
from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.run import evaluate
from kernelwright.env.compiler.sparse.scipy_matrices import from_scipy
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense, pack

SPMV = "y(i) = A(i,j) * x(j)"
ORDER = ("io", "jo", "ii", "ji", "k")
DENSE = np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": {"q": 3}}, "sizes: expected some of i, j, found q"),
        ({"counts": {"A1": 3}}, "counts: expected some of A2, found A1"),
        ({"counts": {"A2": -3}}, "counts: A2: expected at least 0, found -3"),
        ({"sizes": {"i": 2.5}}, "sizes: i: expected a number, found 2.5"),
        ({"dtype": "float16"}, "dtype: expected float32 or float64, found 'float16'"),
    ],
)
def test_sizes_counts_and_dtypes_are_known_ones(options, message):
    with pytest.raises(SparseError) as caught:
        program(SPMV, {"A": "csr"}, **options)
    assert str(caught.value) == message


def test_numpy_numbers_are_sizes():
    made = program(SPMV, {"A": "csr"}, sizes={"i": np.int64(3), "j": np.int32(4)})
    shapes = {tensor.name: tensor.shape for tensor in lower(made).tensors}
    assert shapes["y"] == (Const(3, "int64"),)


def test_formats_are_given_as_text_wherever_they_are_given():
    stored = from_dense("csr", DENSE)
    assert stored.format == program(SPMV, {"A": "csr"}).format("A")
    assert stored.convert("dcsr").arrays[1]["crd"].tolist() == [0, 2]
    packed = pack("coo", (3, 3), [[0], [1]], [5.0])
    assert packed.arrays[2]["crd"].tolist() == [1]
    levels = {2: {"pos": [0, 1, 1, 1], "crd": [1]}}
    assert SparseTensor.checked("csr", (3, 3), levels, [5.0]).to_dense()[0, 1] == 5


def test_an_array_is_no_matrix_of_scipy():
    with pytest.raises(StorageError, match=r"expected a matrix of scipy.sparse, found ndarray"):
        from_scipy(DENSE)


def test_a_structure_and_another_target_are_refused():
    operands = {"A": from_dense("csr", DENSE), "x": np.ones(3)}
    with pytest.raises(SparseError, match="expected none beside the structure of A, found csc"):
        evaluate("C(i,j) = A(i,j) * x(j)", operands, "csc", structure="A")


@pytest.mark.parametrize("form", ["csr", "dcsr", "ell", "coo", "hash"])
def test_a_product_stores_what_both_store_in_any_format(form):
    other = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    operands = {"A": from_dense("csr", DENSE), "B": from_dense(form, other)}
    found = evaluate("C(i,j) = A(i,j) * B(i,j)", operands, "csr")
    assert isinstance(found, SparseTensor)
    assert found.arrays[2]["crd"].tolist() == [1, 2]
    np.testing.assert_array_equal(found.to_dense(), DENSE * other)


@pytest.mark.parametrize("target", ["dense", "csr", "dcsr", "coo"])
@pytest.mark.parametrize("count", [6, 11])
def test_sums_of_many_operands_are_added_in_turns(count, target):
    rng = np.random.default_rng(count)
    arrays = {f"M{i}x": rng.integers(0, 3, (5, 7)).astype(float) for i in range(count)}
    text = "Y(i,j) = " + " - ".join(f"{name}(i,j)" for name in arrays)
    operands = {name: from_dense("csr", array) for name, array in arrays.items()}
    found = evaluate(text, operands, target)
    first, *rest = arrays.values()
    got = found.to_dense() if isinstance(found, SparseTensor) else found
    np.testing.assert_array_equal(got, first - sum(rest))


def test_too_many_operands_that_are_merged_by_rows_are_refused_before_they_are_lowered():
    names = "ABCDEF"
    text = "Y(i,j) = " + " + ".join(f"{name}(i,j)" for name in names)
    made = program(text, dict.fromkeys(names, "dcsr"))
    with pytest.raises(SparseError, match="expected a sum of at most 5 sparse operands at once"):
        lower(made)


@pytest.mark.parametrize(
    ("statement", "formats"),
    [
        ("C(i,A2) = A(i,j) * B(j,A2)", {"A": "csr"}),
        ("C(i,C2) = A(i,C2)", {"A": "csr", "C": "csr"}),
        ("y(i) = A(i,A1) * x(A1)", {"A": "coo"}),
    ],
)
def test_an_index_is_not_named_like_a_level_that_has_a_size(statement, formats):
    with pytest.raises(SparseError, match="expected another name of the index"):
        program(statement, formats)


@pytest.mark.parametrize("loop", ["jo", "ji", "ii"])
def test_rows_of_blocks_are_not_gathered(loop):
    made = program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "C": "bcsr(2,3)"}, order=ORDER)
    with pytest.raises(SparseError, match=f"not blocked, found {loop}"):
        gathered(made, loop)
