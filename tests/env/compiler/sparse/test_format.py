"""Formats: what they say, what is refused, and their text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.compiler.sparse.format import (
    Diagonal,
    Format,
    FormatError,
    Inner,
    Mode,
    Outer,
)
from kernelwright.env.compiler.sparse.levels import LEVELS
from kernelwright.env.compiler.sparse.levels.base import StorageError
from kernelwright.env.compiler.sparse.levels.compressed import Compressed
from kernelwright.env.compiler.sparse.levels.dense import Dense
from kernelwright.env.compiler.sparse.levels.hashed import Hashed
from kernelwright.env.compiler.sparse.levels.offset import Offset
from kernelwright.env.compiler.sparse.levels.padded import Padded
from kernelwright.env.compiler.sparse.levels.singleton import Singleton
from kernelwright.env.compiler.sparse.named import NAMED, format_text, parse_format

WORDS = {
    "dense": "dense(i) dense(j)",
    "dense1": "dense(i)",
    "dense3": "dense(i) dense(j) dense(k)",
    "sv": "compressed(i)",
    "csr": "dense(i) compressed(j)",
    "csc": "dense(j) compressed(i)",
    "dcsr": "compressed(i) compressed(j)",
    "dcsc": "compressed(j) compressed(i)",
    "coo": "compressed(nonunique)(i) singleton(j)",
    "coo3": "compressed(nonunique)(i) singleton(nonunique)(j) singleton(k)",
    "csf": "compressed(i) compressed(j) compressed(k)",
    "csf4": "compressed(i) compressed(j) compressed(k) compressed(l)",
    "csf(2,0,1)": "compressed(k) compressed(i) compressed(j)",
    "bcsr(4,2)": "dense(i/4) compressed(j/2) dense(i%4) dense(j%2)",
    "ell": "dense(i) padded(j)",
    "ell(8)": "dense(i) padded(8)(j)",
    "ellslots": "dense(i) padded(slots)(j)",
    "ellslots(8)": "dense(i) padded(8, slots)(j)",
    "nm(2,4)": "dense(i) dense(j/4) padded(2, int8)(j%4)",
    "dia": "compressed(j-i) dense(i) offset(j)",
    "hash": "dense(i) hashed(j)",
    "hash1": "hashed(i)",
}


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_a_name_is_its_levels(name, words):
    form = parse_format(name)
    assert form.words == words
    assert parse_format(words) == parse_format(words.replace(" ", "")) == form
    assert format_text(form) == format_text(parse_format(words)) == name
    wide = parse_format(f"{words}:int64")
    assert wide.index_dtype == "int64"
    assert format_text(wide) == f"{name}:int64"


def test_every_name_is_tried():
    assert {parse_format(name).words for name in WORDS} >= {
        parse_format(name).words for name, row in NAMED.items() if row.parameters in ("", "width")
    }
    assert set(NAMED) == {name.partition("(")[0].rstrip("134") for name in WORDS}


def test_the_page_lists_every_name_and_kind():
    page = (Path(__file__).parents[4] / "docs" / "formats.md").read_text("utf-8")
    kinds, names = page.split("| name | meaning | levels |")
    rows = dict(re.findall(r"\| `([a-z]+)(?:\([\d,]+\))?` \| ([^|]+) \| `[^|]+` \|\n", names))
    assert rows == {name: row.meaning for name, row in NAMED.items()}
    for name, words in re.findall(r"\| `([a-z\d,()]+)` \| [^|]+ \| `([^|]+)` \|\n", names):
        assert parse_format(name).words == words
    assert all(re.search(rf"\| `{kind}[`(]", kinds) for kind in LEVELS)


def test_a_tensor_of_known_order_decides_what_dense_is():
    assert parse_format("dense", 3) == parse_format("dense3")
    assert parse_format("coo", 4) == parse_format("coo4")
    with pytest.raises(FormatError, match="'csr': expected a format of 3 modes, found 2"):
        parse_format("csr", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crs", "expected a format, dense, sv, .* found 'crs'; did you mean 'csr'"),
        ("csr(3)", r"csr: expected no parameters, found \(3,\)"),
        ("coo1", "coo: expected 2 to 8 modes, found 1"),
        ("csr3", "csr: expected 2 modes, found 3"),
        ("bcsr", r"bcsr: expected parameters \(rows,columns\), found \(\)"),
        ("bcsr(0,4)", "expected a block of at least 1, found 0"),
        ("csf(0,1,1)", "mode j: expected j once, or j/n and then j%n, found j, j"),
        ("csf(9,8,3)", "expected a mode from 0 to 7, found 9"),
        ("", "expected a format, found nothing"),
        ("dense(i", r"expected a level such as compressed\(j\), found 'dense\(i'"),
        ("dens(i)", r"expected a level kind \(dense, .*, found 'dens'; did you mean 'dense'"),
        ("dense(q)", "expected a dimension such as i, .* found 'q'"),
        ("compressed(sorted)(i)", "compressed: expected a parameter of this kind, found 'sorted'"),
        ("padded(8,9)(i)", "padded: expected a parameter of this kind, found '9'"),
        ("padded(0)(i)", "padded: expected a parameter of this kind, found '0'"),
        ("hashed(12)(i)", "hashed: expected a parameter of this kind, found '12'"),
        ("dense(nonunique)(i)", "dense: expected a level that relaxes, found nonunique"),
        ("hashed(nonunique)(i)", "hashed: expected a level that relaxes, found nonunique"),
        ("csr:int16", "index dtype: expected int32 or int64, found 'int16'"),
        ("csr:", "index dtype: expected int32 or int64, found ''"),
        ("singleton(i)", r"level 1 \(singleton\(i\)\): expected a level above it, found the root"),
        ("offset(i)", "level 1 .*expected the diagonal and the row of this mode above it, found"),
        ("dense(i) offset(j)", "level 2 .*expected the diagonal and the row.* found i"),
        ("dense(i) compressed(j-i)", "expected an offset level of j below it, found none"),
        ("dense(j-i) dense(i) dense(j)", "expected an offset level of j below it, found none"),
        ("dense(i-i)", "expected a diagonal over two modes, found i-i"),
        ("dense(i) dense(k)", "mode j: expected j once, .* found nothing"),
        ("dense(i%4) dense(i/4)", "mode i: expected i once, .* found i%4, i/4"),
        ("dense(i/4) dense(i%2)", "mode i: expected i once, .* found i/4, i%2"),
        ("dense(i) dense(i/4) dense(i%4)", "mode i: expected i once, .* found i, i/4, i%4"),
        (
            "compressed(nonunique)(i) compressed(j)",
            "level 1 .*expected a singleton level below one that is not unique, found compressed",
        ),
    ],
)
def test_what_is_no_format_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        parse_format(text)


def test_levels_that_cannot_relax_are_refused_without_text_too():
    with pytest.raises(StorageError, match="offset: expected a level that relaxes"):
        Offset(unique=False)


MATRIX_KINDS = st.one_of(
    st.just(Dense()),
    st.builds(Compressed, ordered=st.booleans()),
    st.builds(
        Padded,
        width=st.none() | st.integers(1, 9),
        slots=st.booleans(),
        dtype=st.sampled_from([None, "int8", "int64"]),
    ),
    st.builds(Hashed, width=st.sampled_from([None, 2, 64])),
)


@given(
    kinds=st.lists(MATRIX_KINDS, min_size=4, max_size=4),
    shape=st.sampled_from(["modes", "blocks", "diagonal"]),
    size=st.integers(1, 9),
    dtype=st.sampled_from(["int32", "int64"]),
)
def test_text_and_format_are_one(kinds, shape, size, dtype):
    dimensions = {
        "modes": (Mode(1), Mode(0)),
        "blocks": (Outer(0, size), Mode(1), Inner(0, size)),
        "diagonal": (Diagonal(0, 1), Mode(0), Mode(1)),
    }[shape]
    levels = list(zip(kinds, dimensions, strict=False))
    if shape == "diagonal":
        levels[2] = (Offset(), Mode(1))
    form = Format(tuple(levels), dtype)
    assert parse_format(format_text(form)) == form
    assert parse_format(f"{form.words}:{dtype}", 2) == form


def test_coordinates_of_levels_and_back():
    form = parse_format("dia")
    assert form.extents((3, 5)) == (7, 3, 5)
    assert form.extents((0, 5)) == (0, 0, 5)
    assert form.addends(3) == (1, 2)
    assert form.addends(2) is None
    assert parse_format("bcsr(4,4)").extents((9, 8)) == (3, 2, 4, 4)
    with pytest.raises(FormatError, match="expected a shape of 2 modes, found 3"):
        form.extents((3, 5, 1))


def test_what_a_format_says_of_itself():
    assert parse_format("bcsr(4,4)").fills
    assert parse_format("dia").fills
    assert not parse_format("csr").fills
    assert not parse_format("nm(2,4)").fills
    assert not parse_format("coo").keeps_duplicates
    levels = ((Compressed(unique=False), Mode(0)), (Singleton(unique=False), Mode(1)))
    assert Format(levels).keeps_duplicates
