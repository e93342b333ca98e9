"""Draw the pictures of these pages into a folder: ``python docs/draw.py [FOLDER]``, by default
``docs/images``. The same Matplotlib draws the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernelwright.display.pictures import draw_dependences, draw_misses
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.misses import miss_table
from kernelwright.env.compiler.poly.affine_map import permutation, skew
from kernelwright.env.compiler.poly.picture import picture
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.search.figures.stencils import jacobi
from kernelwright.search.figures.te_schedules import ORDERS, multiplication, update

IMAGES = Path(__file__).resolve().parent / "images"
NAMES = {"ijk": "i, j, k", "ikj": "i, k, j", "blocked": "tiles"}


def draw(folder: Path) -> list[Path]:
    """All pictures, into a folder that is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    program, loops = jacobi(size=8, steps=4), ("t", "i")
    drawn = [
        draw_dependences(picture(program, loops, map_), folder / name)
        for name, map_ in (
            ("jacobi_skew.svg", skew(2, outer=0, inner=1, factor=1)),
            ("jacobi_swap.svg", permutation((1, 0))),
        )
    ]
    plain, packed = update(multiplication(64)), update(multiplication(64, block=16))
    orders = {said: (plain, parse_trace(ORDERS[name])) for name, said in NAMES.items()}
    orders["tiles, B packed"] = (packed, parse_trace(ORDERS["blocked"]))
    rows = [
        (row.order, row.compulsory, row.capacity, row.conflict)
        for row in miss_table(orders, Cache(8 * 1024, 4, 64))
    ]
    return [*drawn, draw_misses(rows, folder / "matmul_misses.svg")]


if __name__ == "__main__":
    for path in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES):
        print(path)
