from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.tree import parse_document

SCALARS = [
    ("1e-3", 1e-3),
    ("1.5", 1.5),
    ("1.", 1.0),
    (".5", 0.5),
    ("-3", -3),
    ("0x10", 16),
    ("1_000", 1000),
    ("true", True),
    ("null", None),
    ("~", None),
    ("", None),
    ("yes", "yes"),
    ("on", "on"),
    ("-O3", "-O3"),
    ("1:30", "1:30"),
    ("2026-11-29", "2026-11-29"),
    ("'7'", "7"),
    ("0o7", "0o7"),
    ("010", 10),
    ("4096x4096", "4096x4096"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars(text, value):
    found = parse_document(f"x: {text}\n", "f").data["x"]
    assert found == value
    assert type(found) is type(value)


def test_every_key_knows_its_line():
    document = parse_document("a: 1\nb:\n  c: {d: 2}\n  e: [1,\n    2]\n", "f")
    assert document.lines[("b", "c", "d")] == 3
    assert document.lines[("b", "e", "1")] == 5
    assert document.error(("b", "c", "nothing"), "x", "y").line == 3


def test_overrides_replace_add_and_are_named_in_errors():
    document = parse_document("a: 1\nb: {c: 2}\n", "f", ["b.c=5", "d.e=[1, 2]", "a=word"])
    assert document.data == {"a": "word", "b": {"c": 5}, "d": {"e": [1, 2]}}
    error = document.error(("b", "c"), "x", "5")
    assert (error.file, error.line) == ("--set b.c=5", None)


@pytest.mark.parametrize("override", ["a", "=1", "a..b=1", "a.b=1", "c={x: [}"])
def test_malformed_overrides_are_refused(override):
    with pytest.raises(ConfigError) as caught:
        parse_document("a: 1\n", "f", [override])
    assert caught.value.file == f"--set {override}"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_document(text, "f").data, dict)
