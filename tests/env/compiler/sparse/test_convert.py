"""Generated conversions: what `SparseTensor.convert` gives, array by array, or its refusal."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from in_c import SANITIZED, in_c, needs_cc, under_sanitizers

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.sparse import sorting
from kernelwright.env.compiler.sparse.convert import converted
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense, pack

MATRICES = (
    "dense",
    "csr",
    "csc:int64",
    "dcsr",
    "dcsc",
    "coo",
    "bcsr(4,2)",
    "bcsr(2,3):int64",
    "ell",
    "ell(3)",
    "ellslots",
    "nm(2,4)",
    "dia",
    "hash",
    "hashed(16)(j) compressed(i)",
    "dense(i/2) padded(slots)(j/3) dense(i%2) dense(j%3)",
    "compressed(nonunique)(j) singleton(unordered)(i)",
)
CUBES = (
    "dense3",
    "csf",
    "csf(2,0,1):int64",
    "coo3",
    "hash3",
    "dense(i) hashed(j) compressed(k)",
    "compressed(k) padded(slots)(i) compressed(j)",
)
SHAPES = ((5, 7), (1, 4), (0, 3), (3, 0), (1, 1), (8, 4))


def same(source, target, runner=interpret):
    """Both conversions agree; whether there is a result."""
    form = parse_format(target) if isinstance(target, str) else target
    refusal = ""
    try:
        wanted = source.convert(form)
    except StorageError as error:
        refusal = str(error)
    if refusal:
        with pytest.raises(StorageError) as refused:
            converted(source, form, runner)
        assert str(refused.value) == refusal
        return False
    found = converted(source, form, runner)
    expected, arrays = wanted.arguments("B"), found.arguments("B")
    assert set(arrays) == set(expected)
    assert found.shape == wanted.shape
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype, name
        assert arrays[name].tobytes() == array.tobytes(), name
    return True


def stored(text, shape, seed, density=0.35):
    """A random tensor, a stored zero in it where there can be one; None where the format cannot."""
    rng = np.random.default_rng(seed)
    array = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0.0)
    if shape[0] > 2:
        array[2] = 0
    try:
        tensor = from_dense(parse_format(text, len(shape)), array)
    except StorageError:
        return None
    coordinates, values = tensor.coordinates_and_values()
    if values.size and not tensor.format.fills:
        values = values.copy()
        values[values.size // 2] = 0
        tensor = pack(tensor.format, shape, coordinates, values)
    return tensor


@pytest.mark.parametrize("text", MATRICES)
def test_every_pair_of_formats_of_matrices(text):
    done = 0
    for seed, shape in enumerate(SHAPES):
        for density in (0.0, 0.35) if seed == 0 else (0.35,):
            if (source := stored(text, shape, seed, density)) is not None:
                done += sum(same(source, target) for target in MATRICES)
    assert done > 3 * len(MATRICES)


@pytest.mark.parametrize("text", CUBES)
def test_every_pair_of_formats_of_three_modes(text):
    for seed, shape in enumerate(((3, 4, 2), (1, 0, 2), (2, 3, 1))):
        source = stored(text, shape, seed)
        assert source is None or [same(source, target) for target in CUBES]


def test_elements_given_twice_are_kept_or_refused():
    form = parse_format("compressed(nonunique)(i) singleton(nonunique)(j)")
    source = pack(form, (3, 4), [[2, 0, 2, 0], [1, 3, 1, 2]], np.arange(4.0))
    assert same(source, form)
    assert not same(source, "csr")
    assert not same(source, "dia")
    other = parse_format("compressed(nonunique)(j) singleton(nonunique)(i)")
    assert same(source, other)


def test_wide_coordinates_are_sorted_by_digits(monkeypatch):
    monkeypatch.setattr(sorting, "RADIX", 3)
    source = stored("csr", (11, 30), 1)
    assert len(sorting.passes(source.format, parse_format("csc"), source.shape)) == 4
    for target in ("csc", "bcsr(4,2)", "dia", "dcsc"):
        assert same(source, target)


@pytest.mark.parametrize(
    ("source", "target", "levels"),
    [
        ("csr", "csc", [0]),
        ("csr", "coo", []),
        ("coo", "csr", []),
        ("csr", "bcsr(4,4)", [1, 0]),
        ("bcsr(4,4)", "csr", [0]),
        ("csr", "dia", [0]),
        ("dia", "csr", [0]),
        ("hash", "csr", [1, 0]),
        ("bcsr(1,4)", "csr", []),
    ],
)
def test_only_sorts_that_are_needed(source, target, levels):
    found = sorting.passes(parse_format(source), parse_format(target), (8, 8))
    assert [each.level for each in found] == levels


def test_values_that_loops_do_not_have_are_refused():
    source = from_dense(parse_format("csr"), np.eye(2, dtype=complex))
    with pytest.raises(SparseError, match="expected a dtype among bool"):
        converted(source, parse_format("csc"))


def test_coordinates_that_do_not_fit_are_refused_as_packing_does():
    form = parse_format("compressed(i):int64")
    source = pack(form, (2**32,), [[1, 2**31 + 5]], np.ones(2))
    assert not same(source, "compressed(i)")
    assert same(pack(form, (2**32,), [[1, 2**31 - 1]], np.ones(2)), "compressed(i)")


def test_scalars_stay():
    source = SparseTensor(Format(()), (), {}, np.array([0.0]))
    assert converted(source, Format(())).values.tolist() == [0.0]


SAMPLE = [(a, b) for n, a in enumerate(MATRICES) for b in MATRICES[n % 4 :: 4]]


def check_sample(cache, flags, seed):
    done = 0
    for text, target in SAMPLE:
        source = stored(text, (5, 7), seed)
        if source is not None:
            done += same(source, target, in_c(cache, *flags))
    return done


@needs_cc
def test_c_finds_what_the_interpreter_finds(tmp_path):
    assert check_sample(BuildCache(tmp_path), (), 3) > 30


@needs_cc
def test_no_access_is_out_of_bounds(tmp_path):
    done = under_sanitizers(__file__, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "True\n"


if __name__ == "__main__":
    print(check_sample(BuildCache(Path(sys.argv[1])), (SANITIZED,), 5) > 30)
