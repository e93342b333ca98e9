"""Plots of a comparison: the best so far at every budget, and the share of runs that were there.

Colours are those of Okabe and Ito (Color Universal Design, 2008), and every campaign has a dash and
a marker of its own, so curves are told apart without colour too. Names stand beside the curves,
outside the axes, where no data can be; where one is too long for that, all stand in a legend below.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from kernelwright.search.comparing import checkpoints
from kernelwright.search.efficiency import Floats

KINDS = (".svg", ".png")
_WIDTH, _HEIGHT, _DPI = 8.5, 3.9, 150
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)), (0, (8, 3)))
_MARKERS = "osD^vPX"
# The least distance of two names, as a share of the axes' height; the place where they start.
_APART, _BESIDE = 0.075, 1.045
# Characters of a name beside a curve, and of one in the legend below.
_LONG_BESIDE, _LONG_BELOW = 24, 90
# Inches that a line of the legend takes, and that lie around axes.
_LEGEND_LINE, _PAD = 0.19, 0.08
# How many times the one before it a tick of the evaluations is at least.
_NEXT_TICK = 1.15
# Draws on axes and gives the ends of its curves: a campaign's number and a height each.
Ends: TypeAlias = list[tuple[int, float]]
Panel: TypeAlias = Callable[[Axes], Ends]


def plots(summary: Mapping[str, Any], place: Path) -> list[Path]:
    """Draw a comparison's summary: two SVG files in a folder, or everything on one file.

    Raises:
        OSError: if they cannot be written.
    """
    best: list[Panel] = [lambda axes: _best(axes, summary)]
    reached: list[Panel] = [
        lambda axes, target=target: _reached(axes, target, summary["budget"])  # type: ignore[misc]
        for target in summary["targets"]
    ]
    if place.suffix in KINDS and not place.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        return [_draw(summary, [*best, *reached], place)]
    place.mkdir(parents=True, exist_ok=True)
    return [
        _draw(summary, best, place / "best_at_budget.svg"),
        _draw(summary, reached, place / "evaluations_to_target.svg"),
    ]


def _draw(summary: Mapping[str, Any], panels: Sequence[Panel], file: Path) -> Path:
    settings: Any = {"svg.hashsalt": "kernelwright", "svg.fonttype": "none", "font.size": 9}
    names = [str(curve["config"]) for curve in summary["curves"]]
    below = max(map(len, names)) > _LONG_BESIDE
    names = shortened(names, _LONG_BELOW if below else _LONG_BESIDE)
    height = _HEIGHT * len(panels) + (_LEGEND_LINE * len(names) if below else 0)
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        # The layout must not make room for names by itself: it would squeeze axes to nothing.
        engine: Any = figure.get_layout_engine()
        beside = 0.0 if below else _width_of(figure, names)
        engine.set(w_pad=_PAD, h_pad=_PAD, rect=(0, 0, 1 - beside, 1))
        figure.suptitle(shortened([summary["work"]], _LONG_BELOW)[0], fontsize="medium")
        for axes, panel in zip(
            figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True
        ):
            ends = panel(axes)
            if not below:
                _names(
                    axes, [(names[number], end, _style(number)["color"]) for number, end in ends]
                )
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
        if below:
            lines = [Line2D([], [], marker=_MARKERS[i % 7], **_style(i)) for i in range(len(names))]
            figure.legend(lines, names, loc="outside lower left", frameon=False, handlelength=4)
        # Without a date the same comparison gives the same file.
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=_DPI, metadata=metadata)
    return file


def _width_of(figure: Figure, names: Sequence[str]) -> float:
    """The share of a figure's width that the longest name beside its axes takes."""
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    texts = [figure.text(0, 0, name) for name in names]
    widest = max(text.get_window_extent(renderer).width for text in texts)
    for text in texts:
        text.remove()
    return float(widest / figure.bbox.width) + _BESIDE - 1


def shortened(names: Sequence[str], most: int) -> list[str]:
    """Names of at most so many characters that are as different as they were: the middle is left
    out; where the difference was there, what all begin or end with is left out before; where there
    are too many differences for that, they are numbered.
    """
    short = [_middle(name, most) for name in names]
    if len(set(short)) < len(set(names)):
        head, tail = map(_alike, (names, [name[::-1] for name in names]))
        ends = [
            name[max(head - most // 4, 0) : len(name) - max(tail - most // 4, 0)] for name in names
        ]
        short = [_middle(f"…{end}…", most) for end in ends]
    if len(set(short)) < len(set(names)):
        short = [_middle(f"{number}: {name}", most) for number, name in enumerate(names, 1)]
    return short


def _alike(names: Sequence[str]) -> int:
    """With how many characters all names begin."""
    columns = zip(*names, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def _middle(name: str, most: int) -> str:
    """A name without its middle, if it is longer than this."""
    half = most // 2
    return name if len(name) <= most else f"{name[: most - half]}…{name[1 - half :]}"


def _style(number: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "linestyle": _DASHES[number % len(_DASHES)],
        "linewidth": 1.8,
    }


def _best(axes: Axes, summary: Mapping[str, Any]) -> Ends:
    """The median of the best so far over the best known, with its interval."""
    ends: Ends = []
    greatest = 1.0
    for number, curve in enumerate(summary["curves"]):
        rows = [row for row in curve["best_at"] if row["median"] is not None]
        if not rows:
            continue
        places, style = [row["evaluations"] for row in rows], _style(number)
        medians = [row["median"] for row in rows]
        axes.plot(places, medians, marker=_MARKERS[number % 7], clip_on=False, zorder=3, **style)
        banded = [row for row in rows if row["low"] is not None and row["high"] is not None]
        where = [row["evaluations"] for row in banded]
        low, high = ([row[key] for row in banded] for key in ("low", "high"))
        axes.fill_between(where, low, high, color=style["color"], alpha=0.15, linewidth=0)
        greatest = max(greatest, *high, *medians)
        ends.append((number, rows[-1]["median"]))
    near = 1 + summary["within"]
    axes.axhline(near, color="0.4", linewidth=0.9, linestyle=(0, (1, 2)))
    _evaluations_axis(axes, summary["budget"])
    ticks = _ratio_ticks(max(greatest, near))
    axes.set_yscale("function", functions=(_unfolded, _folded))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(1, ticks[-1])
    axes.set_ylabel("best so far / best known")
    axes.set_title(
        f"Best true time so far: median of runs, 95% interval (dotted: within "
        f"{100 * summary['within']:g}%)",
        loc="left",
        fontsize="medium",
    )
    return ends


def _unfolded(ratio: Floats) -> Floats:
    """The root of what is above 1: near the best, where runs end, a little is seen too."""
    return np.sqrt(np.maximum(ratio - 1, 0))


def _folded(height: Floats) -> Floats:
    """The inverse."""
    return np.asarray(1 + height**2)


def _ratio_ticks(greatest: float) -> list[float]:
    """Round ratios from 1 to beyond the greatest, not too near to each other on the axis."""
    ratios = [1.0, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0]
    while ratios[-1] < greatest:
        ratios += [2 * ratios[-1], 5 * ratios[-1], 10 * ratios[-1]]
    top = next(ratio for ratio in ratios[1:] if ratio >= greatest)
    ticks = [1.0]
    for ratio in ratios[1 : ratios.index(top) + 1]:
        apart = (ratio - 1) ** 0.5 - (ticks[-1] - 1) ** 0.5
        if apart >= _APART * (top - 1) ** 0.5:
            ticks.append(ratio)
    if ticks[-1] < top:
        ticks[-1] = top
    return ticks


def _reached(axes: Axes, target: Mapping[str, Any], budget: int) -> Ends:
    """The share of runs that had reached a target, with pointwise limits."""
    ends: Ends = []
    for number, row in enumerate(target["campaigns"]):
        steps, style = row["reached"], _style(number)
        last = steps[-1]["share"] if steps else 0.0
        places = [1, *(step["evaluations"] for step in steps), budget]
        shares = [0.0, *(step["share"] for step in steps), last]
        axes.step(places, shares, where="post", **style)
        if steps:
            low, high = ([*(s[key] for s in steps), steps[-1][key]] for key in ("low", "high"))
            axes.fill_between(
                places[1:], low, high, step="post", color=style["color"], alpha=0.15, linewidth=0
            )
        # A marker a curve, at its last rise, tells them apart where dashes are short. It is not
        # clipped, so it must not lie before the axes begin.
        if steps:
            axes.plot(
                [max(steps[-1]["evaluations"], _beginning(budget))],
                [last],
                marker=_MARKERS[number % 7],
                color=style["color"],
                linestyle="",
                clip_on=False,
                zorder=3,
            )
        ends.append((number, last))
    _evaluations_axis(axes, budget)
    axes.set_ylim(-0.01, 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("runs that are there")
    axes.set_title(
        f"Runs within {100 * target['within']:g}% of the best known: share, pointwise 95% limits",
        loc="left",
        fontsize="medium",
    )
    return ends


def _beginning(budget: int) -> float:
    """Where the axis of evaluations begins: a little before the first checkpoint."""
    return 0.9 * checkpoints(budget)[0]


def _evaluations_axis(axes: Axes, budget: int) -> None:
    axes.set_xscale("log", base=2)
    ticks = checkpoints(budget)
    axes.set_xlim(_beginning(budget), max(budget, 1.1))
    # The budget's own tick, where it is no power of two, must not lie on the one before it.
    if len(ticks) > 1 and ticks[-1] < _NEXT_TICK * ticks[-2]:
        del ticks[-2]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("evaluations")


def _names(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """The campaigns' names beside the axes, as near to the ends of their curves as there is room
    for one under the other, each with a line to its curve.
    """
    if not ends:
        return
    scaled = axes.transScale.transform([(1.0, end) for _, end, _ in ends])
    places: list[float] = axes.transLimits.transform(scaled)[:, 1].tolist()
    for (name, _, colour), end, height in zip(ends, places, _spread(places), strict=True):
        text = axes.annotate(
            name,
            xy=(1.0, end),
            xytext=(_BESIDE, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )
        text.set_in_layout(False)


def _spread(places: Sequence[float]) -> list[float]:
    """Heights at least so far apart, near the wanted places and not above the top."""
    order = sorted(range(len(places)), key=lambda i: (places[i], -i))
    heights = [0.0] * len(places)
    lowest = -1.0
    for i in order:
        heights[i] = lowest = max(places[i], lowest + _APART)
    ceiling = 1.0 + _APART
    for i in reversed(order):
        heights[i] = ceiling = min(heights[i], ceiling - _APART)
    return heights
