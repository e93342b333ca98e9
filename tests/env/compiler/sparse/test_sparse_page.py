"""The tables of docs/sparse.md say what the level kinds and the named formats are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from kernelwright.env.compiler.sparse.levels import LEVELS
from kernelwright.env.compiler.sparse.named import NAMED, parse_format

PAGE = Path(__file__).resolve().parents[4] / "docs" / "sparse.md"
PROPERTIES = ("full", "ordered", "unique", "branchless", "compact")
CAPABILITIES = ("locates", "appends", "inserts")
# A name with the parameters that its page shows.
EXAMPLES = {"bcsr": "bcsr(4,2)", "ell": "ell(8)", "ellslots": "ellslots(8)", "nm": "nm(2,4)"}
EXAMPLES |= {"csf": "csf(0,1,2)"}


def table(first):
    """The cells of the rows below the header that begins with ``first``."""
    lines = PAGE.read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def level(name):
    module, _, attribute = LEVELS[name].partition(":")
    return getattr(import_module(module), attribute)()


def said(kind):
    """Properties and capabilities as the page writes them."""
    words = []
    for name in PROPERTIES:
        may_lack = kind.relaxes and name in ("ordered", "unique")
        words += [f"{name}*" if may_lack else name] if getattr(kind, name) else []
    able = [name for name in CAPABILITIES if getattr(kind, name)]
    return ", ".join(words), kind.iterates, ", ".join(able)


def test_every_level_kind_is_on_the_page():
    rows = {cells[0].strip("`"): tuple(cells[2:]) for cells in table("level")}
    assert rows == {name: said(level(name)) for name in LEVELS}


def test_every_named_format_is_on_the_page():
    rows = {cells[0].strip("`"): cells[1].strip("`") for cells in table("format")}
    wanted = {EXAMPLES.get(name, name): name for name in NAMED}
    assert rows == {text: parse_format(text).words for text in wanted}
