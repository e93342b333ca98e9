"""Statements fit a terminal, and are one line each where they are piped."""

from __future__ import annotations

import io

import pytest
from rich.panel import Panel

from kernelwright.display.tables import print_table
from kernelwright.page import HANGING, Page, wrapped

LONG = "stopped: " + " ".join(f"word{i}" for i in range(40))
PATH = "run: /" + "a_long_folder/" * 12


def printed(*texts, **options):
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
    monkeypatch.setenv("COLUMNS", "60")
    page, stream = printed(LONG, "[bold] stays")
    print_table(page, ("name", "what it is"), [("row", LONG)])
    first, second, *table = stream.getvalue().splitlines()
    assert (first, second) == (LONG, "[bold] stays")
    assert len(table) == 2


def test_a_terminal_s_width_is_kept(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    page, stream = printed(LONG, force_terminal=True, color_system=None)
    print_table(page, ("name", "what it is"), [("row", LONG)])
    lines = stream.getvalue().splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 60


ORDERS = "a\x1b[2J\x1b]0;mine\x07b\u202ec\rd"


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_quoted_gives_no_order_to_the_terminal(terminal):
    page, stream = printed(ORDERS, force_terminal=terminal, width=80)
    print_table(page, ("name", ORDERS), [(ORDERS, "x")])
    page.print(Panel(ORDERS, title=ORDERS))
    said = stream.getvalue()
    for order in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\r"):
        assert order not in said
    assert said.count("\\x1b[2J") == 4 + 1
    assert "\n" in said
