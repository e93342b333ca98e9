"""Section D: regions, halos, recomputation and storage of image pipelines."""

from __future__ import annotations

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.machine.tradeoff import Tradeoff, measure
from kernelwright.env.compiler.poly.region import Region, region
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.search.figures.table import Figure, exact

X, Y = te.Var("x"), te.Var("y")


def halide() -> list[Figure]:
    """Figures D1 to D5."""
    return [_bounds(), _halo(), _recomputation(), _inlined(), _storage()]


def three_stages() -> te.Func:
    """The three stages of exercise 1."""
    source = te.ImageParam("in", 2)
    f, g, h = te.Func("f"), te.Func("g"), te.Func("h")
    f[X, Y] = source[X - 1, Y] + source[X + 2, Y]
    g[X, Y] = f[X, Y - 1] + f[X, Y + 1]
    h[X, Y] = g[X + 1, Y] * 2.0
    return h


def blur(size: int) -> Procedure:
    """Two stages, blurx along rows and blury across them, on a square of this side."""
    source = te.ImageParam("in", 2)
    blurx, blury = te.Func("blurx"), te.Func("blury")
    blurx[Y, X] = (source[Y, X - 1] + source[Y, X] + source[Y, X + 1]) / 3.0
    blury[Y, X] = (blurx[Y - 1, X] + blurx[Y, X] + blurx[Y + 1, X]) / 3.0
    return te.lower("blur", [blury.realize(size, size)])


def boxes(size: int) -> Procedure:
    """Four 3x3 boxes, one after the other, of eight additions and a product each."""
    last = _box("box1", te.ImageParam("in", 2))
    for number in (2, 3, 4):
        last = _box(f"box{number}", last)
    return te.lower("box4", [last.realize(size, size)])


def _box(name: str, source: te.ImageParam | te.Func) -> te.Func:
    above, here, below = (
        source[Y + dy, X - 1] + source[Y + dy, X] + source[Y + dy, X + 1] for dy in (-1, 0, 1)
    )
    box = te.Func(name)
    box[Y, X] = (above + here + below) * (1 / 9)
    return box


def images(stages: int, size: int) -> Procedure:
    """Stages that each keep an image of one size, and repeat its edges."""
    last = _column_sums("image1", te.placeholder("in", (size, size)), size)
    for number in range(2, stages + 1):
        last = _column_sums(f"image{number}", last, size)
    return te.lower("images", [last])


def _column_sums(name: str, image: te.Placeholder | te.Stage, size: int) -> te.Stage:
    def row(y: te.Value) -> te.Value:
        return te.clamp(y, 0, size - 1)

    return te.compute(name, (size, size), lambda y, x: image[row(y - 1), x] + image[row(y + 1), x])


def tiled(size: int, tile: int) -> Procedure:
    """The blur in square tiles, blurx computed for every tile."""
    schedule = f"tile('blury_y', 'blury_x', {tile}, {tile})\ncompute_at('blurx', 'blury_xo')"
    return apply_trace(blur(size), parse_trace(schedule))


def _bounds() -> Figure:
    found = te.regions([three_stages().realize(32, 32)])
    names = ("g", "f", "in")
    got = ", ".join(f"{name} {found[name]!s}".replace(" x ", "x") for name in names)
    return exact(
        "D1",
        "exercise 1: the regions of g, f and the input",
        "g [1, 33)x[0, 32), f [1, 33)x[-1, 33), in [0, 35)x[-1, 33)",
        got,
    )


def _halo() -> Figure:
    procedure = tiled(1024, 64)
    sizes = [_size(region(procedure, "blury_xo", name)) for name in ("blurx", "in")]
    (height, width), (rows, columns) = sizes
    halo = height * width / 64**2 - 1
    got = f"{width}x{height}, {columns}x{rows}, {100 * halo:.0f}%"
    return exact("D2", "what a tile of 64x64 needs, and the halo", "64x66, 66x66, 3%", got)


def _size(touched: Region | None) -> tuple[int, ...]:
    """The extents of a region that is the same in every iteration."""
    assert touched is not None
    found = tuple(axis.constant for axis in touched.axes)
    return tuple(extent for extent in found if extent is not None)


def _recomputation() -> Figure:
    ratios = []
    for tile in (8, 64, 256):
        found = measure(tiled(1024, tile), blur(1024))
        blurx = next(stage for stage in found.stages if stage.tensor == "blurx")
        ratios.append(blurx.computed / found.points)
    got = ", ".join(f"{ratio:.4g}" for ratio in ratios)
    title = "exercise 2: blurx computed per point in tiles of 8, 64, 256"
    return exact("D3", title, "1.25, 1.031, 1.008", got)


def inlined() -> Tradeoff:
    """Four boxes, all inside the last."""
    procedure = boxes(64)
    schedule = "\n".join(f"compute_inline('box{number}')" for number in (1, 2, 3))
    return measure(apply_trace(procedure, parse_trace(schedule)), procedure)


def _inlined() -> Figure:
    got = f"{inlined().operations_per_point:g}"
    return exact("D4", "exercise 3: operations a point of four stages inlined", "7380", got)


def _storage() -> Figure:
    small, large, deep = (
        measure(images(stages, size)).peak_bytes
        for stages, size in ((2, 2048), (2, 8192), (4, 2048))
    )
    # The first is in binary units, as quoted; the others are decimal.
    got = f"{small / 2**20:.0f} MB, {large / 1e6:.0f} MB, {deep / 1e6:.0f} MB"
    title = "stored between two stages at 2048 and 8192, four at 2048"
    return exact("D5", title, "16 MB, 268 MB, 50 MB", got)
