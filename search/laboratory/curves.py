"""Plots of a comparison: the best so far at every budget, and the share of runs that were there.

Colours are those of Okabe and Ito (Color Universal Design, 2008), and every campaign has a dash and
a marker of its own, so curves are told apart without colour too. Names stand beside the curves,
outside the axes, where no data can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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
# How many times the one before it a tick of the evaluations is at least.
_NEXT_TICK = 1.15
Panel = Callable[[Axes], None]


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
        return [_draw([*best, *reached], place)]
    place.mkdir(parents=True, exist_ok=True)
    return [
        _draw(best, place / "best_at_budget.svg"),
        _draw(reached, place / "evaluations_to_target.svg"),
    ]


def _draw(panels: Sequence[Panel], file: Path) -> Path:
    settings: Any = {"svg.hashsalt": "kernelwright", "svg.fonttype": "none", "font.size": 9}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH, _HEIGHT * len(panels)), layout="constrained")
        for axes, panel in zip(
            figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True
        ):
            panel(axes)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color="0.9", linewidth=0.8)
            axes.set_axisbelow(True)
        # Without a date the same comparison gives the same file.
        metadata = {"Date": None} if file.suffix == ".svg" else None
        figure.savefig(file, dpi=_DPI, metadata=metadata)
    return file


def _style(number: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "linestyle": _DASHES[number % len(_DASHES)],
        "linewidth": 1.8,
    }


def _best(axes: Axes, summary: Mapping[str, Any]) -> None:
    """The median of the best so far over the best known, with its interval."""
    ends, greatest = [], 1.0
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
        ends.append((curve["config"], rows[-1]["median"], style["color"]))
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
    _names(axes, ends)


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


def _reached(axes: Axes, target: Mapping[str, Any], budget: int) -> None:
    """The share of runs that had reached a target, with pointwise limits."""
    ends = []
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
        # A marker a curve, at its last rise, tells them apart where dashes are short.
        if steps:
            axes.plot(
                [steps[-1]["evaluations"]],
                [last],
                marker=_MARKERS[number % 7],
                color=style["color"],
                linestyle="",
                clip_on=False,
                zorder=3,
            )
        ends.append((row["config"], last, style["color"]))
    _evaluations_axis(axes, budget)
    axes.set_ylim(-0.01, 1.01)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("runs that are there")
    axes.set_title(
        f"Runs within {100 * target['within']:g}% of the best known: share, pointwise 95% limits",
        loc="left",
        fontsize="medium",
    )
    _names(axes, ends)


def _evaluations_axis(axes: Axes, budget: int) -> None:
    axes.set_xscale("log", base=2)
    ticks = checkpoints(budget)
    axes.set_xlim(0.9 * ticks[0], max(budget, 1.1))
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
        axes.annotate(
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
