"""Tables and lists of facts, folded to a terminal's width, a line a row where they are piped."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def print_table(console: Console, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table: folded to a terminal's width, one line a row where it is piped."""
    cells = [[_cell(value) for value in row] for row in rows]
    if console.is_terminal:
        out = Table(box=None, pad_edge=False, header_style="bold")
        for i, header in enumerate(headers):
            out.add_column(header, justify="right" if _is_numeric(rows, i) else "left")
        for row in cells:
            out.add_row(*row)
        console.print(out)
        return
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    for row in (list(headers), *cells):
        parts = [
            cell.rjust(width) if _is_numeric(rows, i) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        console.print("  ".join(parts).rstrip(), soft_wrap=True)


def print_notes(console: Console, title: str, notes: Sequence[tuple[str, str, str]]) -> None:
    """A section of facts: name, value, and what is to be said of it."""
    console.print()
    print_table(console, (title, "value", "note"), notes)


def _is_numeric(rows: Sequence[Sequence[object]], column: int) -> bool:
    return all(isinstance(row[column], int | float | None) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAIL"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
