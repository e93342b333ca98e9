"""The pictures of the documentation, and what they may be drawn of."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from kernelwright.display.pictures import draw_dependences, draw_misses
from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.poly.affine_map import permutation, skew
from kernelwright.env.compiler.poly.picture import picture
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.search.figures.stencils import jacobi

DOCS = Path(__file__).resolve().parents[1] / "docs"
NAMES = {"jacobi_skew.svg", "jacobi_swap.svg", "matmul_misses.svg"}
BROKEN = "stroke: #d55e00"


def version(text):
    return re.search(r"Matplotlib v[\d.]+", text)[0]


@pytest.mark.cc
def test_the_pictures_of_the_pages_are_those_that_are_drawn(tmp_path):
    draw = runpy.run_path(str(DOCS / "draw.py"))["draw"]
    drawn = {path.name: path.read_text() for path in draw(tmp_path)}
    assert drawn.keys() == NAMES == {path.name for path in (DOCS / "images").iterdir()}
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    for name, text in drawn.items():
        assert f"(images/{name})" in pages
        kept = (DOCS / "images" / name).read_text()
        # Another Matplotlib writes the same picture in another way.
        assert text == kept or version(kept) != f"Matplotlib v{mpl.__version__}"


def test_what_a_map_turns_around_is_marked(tmp_path):
    program, loops = jacobi(size=6, steps=3), ("t", "i")
    swapped = picture(program, loops, permutation((1, 0)))
    text = draw_dependences(swapped, tmp_path / "swap.svg").read_text()
    count = sum(int(arrows.broken.sum()) for arrows in swapped.arrows)
    assert count == 6
    # Each arrow in both spaces, its line and its head, and the line of the legend.
    assert text.count(BROKEN) == 2 * 2 * count + 1
    legal = picture(program, loops, skew(2, outer=0, inner=1, factor=1))
    assert BROKEN not in draw_dependences(legal, tmp_path / "skew.svg").read_text()


def test_the_same_picture_is_the_same_file(tmp_path):
    rows = [("a", 1, 2, 3), ("b", 3, 0, 0)]
    first, second = (draw_misses(rows, tmp_path / f"{n}.svg").read_bytes() for n in "ab")
    assert first == second
    other = draw_misses([("a", 1, 2, 4), ("b", 3, 0, 0)], tmp_path / "c.svg").read_bytes()
    assert other != first
    assert draw_misses(rows, tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_plane_is_refused(tmp_path):
    x = te.placeholder("x", (4, 3, 2))
    cube = te.lower("f", [te.compute("y", (4, 3, 2), lambda i, j, k: x[i, j, k], [x])])
    with pytest.raises(ValueError, match="expected two loops, found 3"):
        draw_dependences(picture(cube, ("i", "j", "k")), tmp_path / "cube.svg")
    with pytest.raises(ValueError, match="at least one row of misses"):
        draw_misses([], tmp_path / "none.svg")
    assert not list(tmp_path.iterdir())


def test_the_overview_lists_every_directive_once():
    text = (DOCS / "schedules.md").read_text()
    listed = re.findall(r"^\| \[`(\w+)`\]\(directives/(\w+)\.md\)", text, re.MULTILINE)
    assert sorted(op for op, _ in listed) == sorted(known_directives())
    assert all(op == page for op, page in listed)
    assert np.all([(DOCS / "directives" / f"{page}.md").is_file() for _, page in listed])
