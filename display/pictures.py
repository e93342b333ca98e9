"""Pictures of what the compiler knows: an iteration space with its dependences before and after a
map, and where the cache misses of several schedules come from.

Colours are those of Okabe and Ito (Color Universal Design, 2008); what they tell apart, dashes and
hatches tell apart too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from kernelwright.env.compiler.poly.picture import Picture

_COLOURS = {"flow": "#0072B2", "anti": "#009E73", "output": "#CC79A7"}
_DASHES: dict[str, Any] = {"flow": "-", "anti": (0, (4, 1.5)), "output": (0, (1, 1))}
_BROKEN = "#D55E00"
# Arrows end this far from the points, in points of the page.
_GAP = 4.0


def draw_dependences(picture: Picture, path: Path) -> Path:
    """An iteration space of two loops and what a map makes of it, side by side, as SVG or PNG by
    the file's name. An arrow leads from what must run first; one that the map turns around is
    orange and thick.

    Raises:
        ValueError: if the space has other than two loops, or the map other than two rows.
        OSError: if the file cannot be written.
    """
    for array, what in ((picture.points, "loops"), (picture.moved, "rows of a map")):
        if array.shape[1] != 2:
            raise ValueError(f"expected two {what}, found {array.shape[1]}")
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    before, after = figure.subplots(1, 2)
    _space(before, picture, picture.points)
    _space(after, picture, picture.moved)
    first, second = picture.loops
    before.set_title("as it runs")
    before.set_xlabel(second)
    before.set_ylabel(first)
    after.set_title("after the map" + (" (illegal)" if _is_illegal(picture) else ""))
    rows = _row_texts(picture)
    after.set_ylabel(rows[0])
    after.set_xlabel(rows[1])
    figure.legend(handles=_handles(picture), loc="outside lower center", ncols=4, frameon=False)
    return _saved(figure, path)


def draw_misses(rows: Sequence[tuple[str, int, int, int]], path: Path) -> Path:
    """Bars of cache misses, one a schedule: ``(name, compulsory, capacity, conflict)``, from the
    top in the given order, as SVG or PNG by the file's name.

    Raises:
        ValueError: if there is no row.
        OSError: if the file cannot be written.
    """
    if not rows:
        raise ValueError("expected at least one row of misses, found none")
    figure = Figure(figsize=(9.0, 1.2 + 0.45 * len(rows)), layout="constrained")
    axes = figure.subplots()
    names = [row[0] for row in rows]
    left = np.zeros(len(rows))
    parts = (
        ("compulsory", "#56B4E9", ""),
        ("capacity", "#E69F00", "//"),
        ("conflict", "#000000", ""),
    )
    for place, (kind, colour, hatch) in enumerate(parts, start=1):
        counts = np.array([row[place] for row in rows], float)
        axes.barh(
            names, counts, left=left, color=colour, hatch=hatch, edgecolor="white", label=kind
        )
        left += counts
    for name, total in zip(names, left, strict=True):
        axes.annotate(
            f"{int(total):,}", (total, name), (4, 0), textcoords="offset points", va="center"
        )
    axes.invert_yaxis()
    axes.set_xlim(0, left.max() * 1.12)
    axes.set_xlabel("cache misses")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return _saved(figure, path)


def _saved(figure: Figure, path: Path) -> Path:
    # The same picture gives the same file.
    with mpl.rc_context({"svg.hashsalt": "kernelwright"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def _is_illegal(picture: Picture) -> bool:
    return any(bool(arrows.broken.any()) for arrows in picture.arrows)


def _space(axes: Axes, picture: Picture, points: NDArray[np.int64]) -> None:
    """The points, the second coordinate to the right and the first one down, and the arrows."""
    for arrows in picture.arrows:
        kind = str(arrows.kind)
        for (first, second), is_broken in zip(arrows.ends, arrows.broken, strict=True):
            start, end = points[first], points[second]
            axes.annotate(
                "",
                xy=(float(end[1]), float(end[0])),
                xytext=(float(start[1]), float(start[0])),
                arrowprops={
                    "arrowstyle": "->",
                    "color": _BROKEN if is_broken else _COLOURS[kind],
                    "linestyle": "-" if is_broken else _DASHES[kind],
                    "linewidth": 2.2 if is_broken else 1.0,
                    "shrinkA": _GAP,
                    "shrinkB": _GAP,
                    "connectionstyle": f"arc3,rad={_BENDS[kind]}",
                },
            )
    axes.scatter(points[:, 1], points[:, 0], s=22, color="black", zorder=3)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.margins(0.08)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


# Dependences of several kinds between the same points lie side by side.
_BENDS = {"flow": 0.0, "anti": 0.18, "output": -0.18}


def _row_texts(picture: Picture) -> list[str]:
    """The rows of the map as sums of loops: ``t + i``."""
    return [_sum(row, picture.loops) for row in picture.map_.rows]


def _sum(row: Sequence[int], loops: Sequence[str]) -> str:
    parts = []
    for factor, loop in zip(row, loops, strict=False):
        if factor:
            sign = "-" if factor < 0 else "+"
            size = "" if abs(factor) == 1 else f"{abs(factor)} "
            parts.append(f"{sign} {size}{loop}")
    return " ".join(parts).removeprefix("+ ") or "0"


def _handles(picture: Picture) -> list[Line2D]:
    handles = [
        Line2D([], [], color=_COLOURS[kind], linestyle=_DASHES[kind], label=f"{kind} dependence")
        for kind in (str(arrows.kind) for arrows in picture.arrows if len(arrows.ends))
    ]
    if _is_illegal(picture):
        handles.append(Line2D([], [], color=_BROKEN, linewidth=2.2, label="turned around"))
    return handles
