"""Statements fit a terminal, and are one line each where they are piped."""

from __future__ import annotations

import io

import pytest

from kernelwright.display import print_table
from kernelwright.page import HANGING, Page, wrapped

LONG = "stopped: " + " ".join(f"word{i}" for i in range(40))
TERMINAL = {"force_terminal": True, "width": 60, "color_system": None}
PATH = "run: /" + "a_long_folder/" * 12


def printed(monkeypatch, columns, *texts, **options):
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    page = Page(file=stream, **options)
    for text in texts:
        page.print(text)
    return page, stream


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("indent", ["", "    "])
def test_a_long_line_hangs_and_loses_no_word(width, indent):
    lines = wrapped(indent + LONG, width).split("\n")
    assert len(lines) > 1
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines) == LONG
    assert lines[0].startswith(indent + "stopped:")
    assert all(line.startswith(indent + HANGING * " " + "word") for line in lines[1:])


def test_what_fits_and_what_is_one_word_is_left_alone():
    text = f"a table  of   columns\n\n{PATH}"
    lines = wrapped(text, 40).split("\n")
    assert lines[:2] == ["a table  of   columns", ""]
    assert PATH.removeprefix("run: ") in [line.strip() for line in lines]


def test_piped_text_is_one_line_a_statement(monkeypatch):
    _, stream = printed(monkeypatch, None, LONG, "[bold] stays")
    assert stream.getvalue() == f"{LONG}\n[bold] stays\n"


@pytest.mark.parametrize(("columns", "options"), [("60", {}), (None, TERMINAL)])
def test_a_terminal_s_width_or_a_given_one_is_kept(monkeypatch, columns, options):
    page, stream = printed(monkeypatch, columns, LONG, **options)
    assert page.folds
    print_table(page, ("name", "what it is"), [("row", LONG)])
    lines = stream.getvalue().splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 60


def test_a_piped_table_is_one_line_a_row(monkeypatch):
    page, stream = printed(monkeypatch, None)
    print_table(page, ("name", "what it is"), [("row", LONG)])
    assert len(stream.getvalue().splitlines()) == 2
