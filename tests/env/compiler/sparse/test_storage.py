"""Tensors in their formats: round trips, and arrays that are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense, pack

MATRICES = (
    "dense",
    "csr",
    "csc",
    "dcsr",
    "dcsc",
    "coo",
    "bcsr(4,4)",
    "bcsr(2,3)",
    "ell",
    "ellslots",
    "nm(4,4)",
    "dia",
    "hash",
    "dense(i) compressed(j-i) offset(j)",
    "dense(i/2) padded(slots)(j/3) dense(i%2) dense(j%3)",
    "compressed(nonunique, unordered)(i) singleton(nonunique)(j)",
    "dense(j) hashed(i)",
    "compressed(i) dense(j)",
)
SHAPES = ((7, 9), (12, 12), (1, 1), (1, 6), (6, 1), (0, 4), (4, 0), (0, 0))


def sample(shape, density, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 9, shape) * (rng.random(shape) < density)).astype(dtype)


def patterns(shape):
    """Empty, full, random, a dense row, empty rows."""
    yield np.zeros(shape)
    yield sample(shape, 1.0)
    yield sample(shape, 0.3)
    row = sample(shape, 0.1)
    row[:1] = 2.0
    yield row
    rows = sample(shape, 0.5)
    rows[::2] = 0.0
    yield rows


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("text", MATRICES)
def test_a_matrix_comes_back(text, dtype):
    form = parse_format(f"{text}:{dtype}")
    for shape in SHAPES:
        for array in patterns(shape):
            tensor = from_dense(form, array)
            np.testing.assert_array_equal(tensor.to_dense(), array)
            again = SparseTensor.checked(form, shape, tensor.arrays, tensor.values)
            assert again.arguments("A").keys() == tensor.arguments("A").keys()
            for name, data in tensor.arguments("A").items():
                np.testing.assert_array_equal(again.arguments("A")[name], data)
                if name != "A_vals" and "nm" not in text:
                    assert data.dtype == dtype


@pytest.mark.parametrize("text", ["dense3", "coo3", "csf", "csf(2,0,1)", "csf(1,2,0)", "hash3"])
def test_a_tensor_of_three_modes_comes_back(text):
    form = parse_format(text)
    for shape in ((3, 4, 5), (1, 1, 1), (0, 2, 3), (2, 0, 3), (2, 3, 0)):
        array = sample(shape, 0.3)
        tensor = from_dense(form, array)
        np.testing.assert_array_equal(tensor.to_dense(), array)
        SparseTensor.checked(form, shape, tensor.arrays, tensor.values)


@pytest.mark.parametrize(
    "text", ["dense1", "sv", "hash1", "padded(i)", "dense(i/4) compressed(i%4)"]
)
def test_a_vector_comes_back(text):
    form = parse_format(text)
    for size in (0, 1, 10):
        array = sample((size,), 0.4)
        tensor = from_dense(form, array)
        np.testing.assert_array_equal(tensor.to_dense(), array)
        SparseTensor.checked(form, (size,), tensor.arrays, tensor.values)


@pytest.mark.parametrize("text", MATRICES)
def test_any_format_converts_to_any_other(text):
    array = sample((8, 12), 0.2, seed=3)
    tensor = from_dense(parse_format(text), array)
    for other in MATRICES:
        converted = tensor.convert(parse_format(other))
        np.testing.assert_array_equal(converted.to_dense(), array)
        if not converted.format.fills:
            assert converted.coordinates_and_values()[1].size == np.count_nonzero(array)


@given(data=st.data(), text=st.sampled_from(MATRICES))
@settings(max_examples=150, deadline=None)
def test_elements_in_any_order_are_packed(data, text):
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    cells = data.draw(
        st.lists(
            st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)),
            unique=True,
            max_size=20,
        )
    )
    values = np.arange(len(cells), dtype=np.float32) + 1
    coordinates = np.array(cells, np.int64).reshape(len(cells), 2).T
    tensor = pack(parse_format(text), (rows, columns), coordinates, values)
    expected = np.zeros((rows, columns), np.float32)
    expected[tuple(coordinates)] = values
    np.testing.assert_array_equal(tensor.to_dense(), expected)
    assert tensor.values.dtype == np.float32


def test_explicit_zeros_are_kept():
    tensor = pack(parse_format("csr"), (2, 3), [[0, 1], [2, 0]], [0.0, 5.0])
    assert tensor.arguments("A")["A2_crd"].tolist() == [2, 0]
    assert tensor.convert(parse_format("coo")).values.tolist() == [0.0, 5.0]
    assert tensor.convert(parse_format("dia")).convert(parse_format("csr")).values.tolist() == [5.0]


TWICE = ([[1, 0, 1, 1], [2, 0, 2, 0]], [3.0, 1.0, 4.0, 7.0])


def test_duplicates_are_refused_summed_or_kept():
    csr, coo = parse_format("csr"), parse_format("coo")
    kept = parse_format("compressed(nonunique)(i) singleton(nonunique)(j)")
    for form in (csr, coo):
        with pytest.raises(StorageError, match=r"every coordinate once, found \(1, 2\) again"):
            pack(form, (2, 3), *TWICE)
    with pytest.raises(StorageError, match=r"found \(1, 2\) again"):
        pack(kept, (2, 3), *TWICE, duplicates="refuse")
    assert pack(csr, (2, 3), *TWICE, duplicates="sum").values.tolist() == [1.0, 7.0, 7.0]
    tensor = pack(kept, (2, 3), *TWICE)
    assert tensor.values.tolist() == [1.0, 7.0, 3.0, 4.0]
    assert tensor.to_dense().tolist() == [[1, 0, 0], [7, 0, 7]]
    SparseTensor.checked(kept, (2, 3), tensor.arrays, tensor.values)
    with pytest.raises(StorageError, match="expected a format whose last level is not unique"):
        pack(csr, (2, 3), *TWICE, duplicates="keep")
    with pytest.raises(StorageError, match="expected refuse, sum, keep, found 'max'"):
        pack(csr, (2, 3), [[], []], [], duplicates="max")
    with pytest.raises(StorageError, match=r"found \(1, 2\) again"):
        tensor.convert(csr)


@pytest.mark.parametrize(
    ("coordinates", "values", "message"),
    [
        ([[0, 2], [0, 0]], [1.0, 2.0], "coordinate i of element 1: expected 0 to 1, found 2"),
        ([[0, 1], [0, -1]], [1.0, 2.0], "coordinate j of element 1: expected 0 to 2, found -1"),
        ([[0, 1]], [1.0, 2.0], r"coordinates of shape \(2, values\), found \(2,\) and \(1, 2\)"),
        ([[0.5], [0.0]], [1.0], "coordinates: expected whole numbers, found float64"),
        ([[0], [0]], 1.0, "expected values of one dimension"),
        (np.array([[2**64 - 1], [0]], np.uint64), [1.0], "expected 0 to 1, found 1844674407370"),
    ],
)
def test_elements_that_are_none_are_refused(coordinates, values, message):
    with pytest.raises(StorageError, match=message):
        pack(parse_format("csr"), (2, 3), coordinates, values)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("csr", (2**31, 4), r"level 1 \(dense\): expected at most 2147483647 positions \(int32"),
        ("dense", (65536, 65536), r"level 2 \(dense\): .* found 4294967296"),
        ("ell(65536)", (65536, 9), r"level 2 \(padded\(65536\)\): expected at most 2147483647"),
        ("dense(i) hashed(65536)(j)", (65536, 9), "level 2 .*expected at most 2147483647"),
        ("dense3:int64", (2**31, 2**31, 4), r"level 3 \(dense\): .*int64 indices\), found 18446"),
        ("sv", (2**31 + 5,), r"level 1 \(compressed\): crd: .*int32 holds, found 2147483650"),
    ],
)
def test_positions_and_coordinates_that_do_not_fit_are_refused(text, shape, message):
    form = parse_format(text)
    last = [[n - 3] for n in shape] if text == "sv" else [[0] for _ in shape]
    with pytest.raises(StorageError, match=message):
        pack(form, shape, last, [1.0])


def test_a_width_that_the_fullest_row_decides_is_bounded_too():
    """65536 rows, one of 40000: more places than int32 counts, refused before they are made."""
    columns = np.arange(40000)
    with pytest.raises(StorageError, match="expected at most 2147483647 positions"):
        pack(parse_format("ell"), (65536, 40000), [columns * 0, columns], columns)
    with pytest.raises(StorageError, match="expected at most 2147483647 positions"):
        pack(parse_format("hash"), (65536, 40000), [columns * 0, columns], columns)


def test_int64_indices_reach_further():
    tensor = pack(parse_format("sv:int64"), (2**40,), [[2**40 - 1]], [1.0])
    assert tensor.arguments("v")["v1_crd"].tolist() == [2**40 - 1]


def test_levels_that_cannot_hold_elements_say_so():
    with pytest.raises(StorageError, match=r"padded\(1\)\): expected at most 1 .*found 2 below 1"):
        pack(parse_format("ell(1)"), (2, 3), [[1, 1], [0, 2]], [1.0, 2.0])
    with pytest.raises(StorageError, match=r"hashed\(2\)\): .* fewer than 2 .*found 2 below 1"):
        pack(parse_format("dense(i) hashed(2)(j)"), (2, 3), [[1, 1], [0, 2]], [1.0, 2.0])
    with pytest.raises(StorageError, match="a singleton level: expected one element below each"):
        pack(parse_format("dense(i) singleton(j)"), (2, 3), [[1, 1], [0, 2]], [1.0, 2.0])
    with pytest.raises(StorageError, match="expected a coordinate to pad 6 places with"):
        pack(parse_format("ell(2)"), (3, 0), np.zeros((2, 0), int), [])
    with pytest.raises(StorageError, match=r"shape: expected 2 modes .*found 1"):
        pack(parse_format("csr"), (3,), [[0]], [1.0])
    with pytest.raises(StorageError, match="shape: expected j of at least 0, found -1"):
        pack(parse_format("csr"), (3, -1), np.zeros((2, 0), int), [])


def csr(pos=(0, 2, 2, 3), crd=(0, 3, 1), **other):
    return {2: {"pos": np.array(pos), "crd": np.array(crd), **other}}


def coo(pos, rows, columns):
    return {1: {"pos": np.array(pos), "crd": np.array(rows)}, 2: {"crd": np.array(columns)}}


def padded(lengths, crd):
    return {2: {"len": np.array(lengths), "crd": np.array(crd)}}


def hashed(crd):
    return {2: {"crd": np.array(crd)}}


ONES = np.ones(3)
# Format, arrays of a 3 × 4 matrix, values, message.
MALFORMED = [
    ("csr", csr(pos=(0, 2, 2)), ONES, r"level 2 \(compressed\): pos: expected 4 elements, found 3"),
    ("csr", csr(pos=(1, 2, 2, 3)), ONES, r"level 2 .*pos\[0\]: expected 0, found 1"),
    ("csr", csr(pos=(0, 2, 1, 3)), ONES, r"level 2 .*pos\[2\]: expected at least 2, found 1"),
    ("csr", csr(pos=(0, 2, 2, 4)), ONES, r"level 2 .*pos\[3\]: expected at most 3, found 4"),
    ("csr", csr(pos=(0, 2, 2, -1)), ONES, r"level 2 .*pos\[3\]: expected at least 2, found -1"),
    ("csr", csr(pos=()), ONES, "level 2 .*pos: expected 4 elements, found 0"),
    ("csr", csr(crd=(0, 4, 1)), ONES, r"level 2 .*crd\[1\]: expected 0 to 3, found 4"),
    ("csr", csr(crd=(0, -1, 1)), ONES, r"level 2 .*crd\[1\]: expected 0 to 3, found -1"),
    ("csr", csr(crd=(3, 0, 1)), ONES, r"level 2 .*crd\[1\]: expected at least 4, found 0"),
    ("csr", csr(crd=(3, 3, 1)), ONES, r"level 2 .*crd\[1\]: expected at least 4, found 3"),
    ("csr", csr(crd=(0.0, 3.0, 1.0)), ONES, "level 2 .*crd: expected .* whole numbers, found 1 of"),
    ("csr", csr(crd=((0, 3, 1),)), ONES, "level 2 .*crd: expected one dimension .*found 2 of"),
    (
        "csr",
        csr(crd=(0, 2**40, 1)),
        ONES,
        r"level 2 .*crd.*expected a number that int32 holds",
    ),
    ("csr", csr(), np.ones(2), "values: expected 3 elements, found 2"),
    ("csr", csr(), np.ones((3, 1)), "values: expected one dimension, found 2"),
    ("csr", csr(len=ONES), ONES, "level 2 .*expected pos, crd, found len"),
    ("csr", {2: {"pos": [0, 0, 0, 0]}}, ONES, "level 2 .*crd: expected an array, found none"),
    ("csr", csr() | {1: {"crd": [0]}}, ONES, r"level 1 \(dense\): expected no arrays, found crd"),
    ("csr", csr() | {3: {}}, ONES, "expected arrays of levels 1 to 2, found those of level 3"),
    (
        "dense(i) compressed(unordered)(j)",
        csr(pos=(0, 3, 3, 3), crd=(3, 0, 3)),
        ONES,
        r"level 2 .*crd\[2\]: expected a new coordinate, found 3 again",
    ),
    ("coo", coo([0, 3], [0, 2, 1], [0, 0, 0]), ONES, r"level 1 .*crd\[2\]: .* at least 2, found 1"),
    ("coo", coo([0, 3], [0, 1, 1], [0, 2, 1]), ONES, r"level 2 .*in order, found \(1, 1\)"),
    ("coo", coo([0, 3], [0, 1, 1], [0, 2, 2]), ONES, r"level 2 .*every element once, found \(1, 2"),
    ("coo", coo([0, 3], [0, 1, 2], [0, 2]), ONES, "level 2 .*crd: expected 3 elements, found 2"),
    ("coo", coo([0, 3], [0, 1, 2], [0, 9, 1]), ONES, r"level 2 .*crd\[1\]: expected 0 to 3"),
    ("ell(2)", padded([1, 3, 0], [0] * 6), np.ones(6), r"level 2 .*len\[1\]: expected 0 to 2"),
    ("ell(2)", padded([1, -1, 0], [0] * 6), np.ones(6), r"level 2 .*len\[1\]: expected 0 to 2"),
    ("ell(2)", padded([1, 0], [0] * 6), np.ones(6), "level 2 .*len: expected 3 elements, found 2"),
    ("ell(2)", padded([0] * 3, [0] * 5), np.ones(6), "level 2 .*crd: expected 6 elements, found 5"),
    (
        "ell",
        padded([0] * 3, [0] * 5),
        np.ones(6),
        "crd: expected a multiple of 3 .*found 5",
    ),
    (
        "ell(2)",
        padded([0] * 3, [0, 7, *[0] * 4]),
        np.ones(6),
        r"crd\[1\]: expected 0 to 3, found 7",
    ),
    (
        "ell(2)",
        padded([0, 2, 0], [0, 0, 3, 1, 0, 0]),
        np.ones(6),
        r"crd\[3\]: .* 4, found 1",
    ),
    (
        "ellslots(2)",
        padded([0, 2, 0], [0, 3, 0, 0, 1, 0]),
        np.ones(6),
        r"level 2 .*crd\[4\]: expected at least 4, found 1",
    ),
    ("ell(2)", padded([1, 0, 0], [0] * 6), np.ones(6), r"values\[1\]: expected 0 where no element"),
    (
        "hash",
        hashed([-1, 9, *[-1] * 4]),
        np.ones(6),
        r"level 2 .*crd\[1\]: expected 0 to 3, found 9",
    ),
    ("hash", hashed([-1, -2, *[-1] * 4]), np.ones(6), r"level 2 .*crd\[1\]: expected 0 to 3"),
    ("hash", hashed([0, 1, *[-1] * 4]), np.ones(6), r"crd\[0:2\]: expected an empty place"),
    ("hash", hashed([-1] * 9), np.ones(9), "crd: expected 3 tables of a power of two .*found 9 el"),
    ("hash", hashed([-1] * 7), np.ones(7), "crd: expected 3 tables of a power of two .*found 7 el"),
    (
        "hash",
        hashed([0, 0, -1, -1, *[-1] * 8]),
        np.ones(12),
        r"crd\[1\]: .*new .*found 0",
    ),
    ("hash", hashed([-1, 0, -1, -1, *[-1] * 8]), np.ones(12), r"crd\[1\]: expected no empty place"),
    ("dia", {1: {"pos": [0, 1], "crd": [0]}}, ONES, r"values\[0\]: expected 0 where no element"),
    (
        "dia",
        {1: {"pos": [0, 1], "crd": [6]}},
        ONES,
        r"level 1 .*crd\[0\]: .* 0 to 5, found 6",
    ),
]


@pytest.mark.parametrize(("text", "arrays", "values", "message"), MALFORMED)
def test_malformed_arrays_are_refused(text, arrays, values, message):
    with pytest.raises(StorageError, match=message):
        SparseTensor.checked(parse_format(text), (3, 4), arrays, values)


@given(
    data=st.data(), text=st.sampled_from(["csr", "dcsr", "coo", "ell", "ellslots", "hash", "dia"])
)
@settings(max_examples=300, deadline=None)
def test_whatever_is_accepted_can_be_listed(data, text):
    """Arrays of any numbers are refused, or list coordinates that are in the matrix, each once."""
    form, shape = parse_format(text), (3, 4)
    start = from_dense(form, sample(shape, 0.4))
    arrays = {n: {k: v.copy() for k, v in own.items()} for n, own in start.arrays.items()}
    for own in arrays.values():
        for array in own.values():
            if array.size and data.draw(st.booleans()):
                at = data.draw(st.integers(0, array.size - 1))
                array[at] = data.draw(st.integers(-2, 7))
    try:
        tensor = SparseTensor.checked(form, shape, arrays, start.values)
    except StorageError:
        return
    coordinates, values = tensor.coordinates_and_values()
    assert values.size == coordinates.shape[1]
    assert (coordinates >= 0).all()
    assert (coordinates < np.array([shape]).T).all()
    assert len(set(zip(*coordinates.tolist(), strict=True))) == values.size


def test_positions_whose_differences_overflow_descend_all_the_same():
    pos = np.array([0, 2**63 - 1, -(2**63), -1, 3])
    with pytest.raises(StorageError, match=r"pos\[2\]: expected at least 9223372036854775807"):
        SparseTensor.checked(parse_format("csr:int64"), (4, 4), csr(pos=pos), ONES)


def test_what_lies_beyond_the_last_position_is_cut_off():
    tensor = SparseTensor.checked(
        parse_format("csr"), (3, 4), csr(crd=(0, 3, 1, 99, 99)), np.arange(5.0)
    )
    assert tensor.arguments("A")["A2_crd"].tolist() == [0, 3, 1]
    assert tensor.values.tolist() == [0.0, 1.0, 2.0]


def test_arrays_of_the_right_dtype_are_shared():
    arrays = {2: {"pos": np.array([0, 1], np.int32), "crd": np.array([0], np.int32)}}
    tensor = SparseTensor.checked(parse_format("csr"), (1, 1), arrays, np.ones(1))
    assert np.shares_memory(tensor.arrays[2]["crd"], arrays[2]["crd"])


def test_padding_is_in_range_and_told_apart():
    array = np.array([[0, 0, 3, 4], [0, 5, 0, 0], [0, 0, 0, 0]])
    tensor = from_dense(parse_format("ell(3)"), array)
    own = tensor.arguments("A")
    assert own["A2_len"].tolist() == [2, 1, 0]
    assert own["A2_crd"].tolist() == [2, 3, 3, 1, 1, 1, 0, 0, 0]
    assert own["A_vals"].tolist() == [3, 4, 0, 5, 0, 0, 0, 0, 0]
    slots = from_dense(parse_format("ellslots(3)"), array).arguments("A")
    assert slots["A2_crd"].reshape(3, 3).T.reshape(-1).tolist() == own["A2_crd"].tolist()
    assert slots["A_vals"].reshape(3, 3).T.reshape(-1).tolist() == own["A_vals"].tolist()


def test_structured_sparsity_keeps_its_metadata_in_bytes():
    array = np.array([[1, 0, 2, 0, 0, 3, 0, 4], [0, 0, 0, 5, 0, 0, 0, 0]], np.float32)
    tensor = from_dense(parse_format("nm(2,4)"), array)
    own = tensor.arguments("A")
    assert own["A3_crd"].dtype == own["A3_len"].dtype == np.int8
    assert own["A3_crd"].tolist() == [0, 2, 1, 3, 3, 3, 0, 0]
    assert tensor.nbytes == 8 * (4 + 1) + 4
    with pytest.raises(StorageError, match=r"level 3 .*expected at most 2 .*found 3 below 0"):
        from_dense(parse_format("nm(2,4)"), np.ones((1, 3)))


def test_diagonals_are_stored_whole():
    array = np.diag([1.0, 2.0, 3.0]) + np.diag([4.0, 5.0], 1)
    tensor = from_dense(parse_format("dia"), array)
    assert tensor.arguments("A")["A1_crd"].tolist() == [2, 3]
    assert tensor.values.tolist() == [1, 2, 3, 4, 5, 0]


def test_bytes_of_a_tensor():
    tensor = from_dense(parse_format("csr"), sample((64, 64), 0.5, dtype=np.float32))
    assert tensor.nbytes == 8 * tensor.stored + 4 * 65
    assert from_dense(parse_format("dense"), np.zeros((64, 64), np.float32)).nbytes == 4 * 64 * 64


def test_a_scalar_is_a_tensor_without_levels():
    from kernelwright.env.compiler.sparse.format import Format

    tensor = from_dense(Format(()), np.float64(3.5))
    assert tensor.values.tolist() == [3.5]
    assert tensor.to_dense() == 3.5


@pytest.mark.parametrize(
    "words",
    [
        "hashed(i) compressed(j)",
        "hashed(i) hashed(j)",
        "hashed(i) dense(j)",
        "dense(i) hashed(j) compressed(k)",
        "dense(i) padded(slots)(j) compressed(k)",
        "compressed(i) padded(slots)(j) padded(k)",
    ],
)
def test_levels_below_places_that_are_not_in_order_of_coordinates(words):
    form = parse_format(words)
    rng = np.random.default_rng(0)
    shape = (9, 7, 5)[: form.order]
    array = np.where(rng.random(shape) < 0.5, rng.random(shape), 0.0)
    tensor = from_dense(form, array)
    assert np.array_equal(tensor.to_dense(), array)
    again = SparseTensor.checked(form, shape, tensor.arrays, tensor.values)
    assert np.array_equal(again.to_dense(), array)
    assert np.array_equal(tensor.convert(parse_format("coo", form.order)).to_dense(), array)
