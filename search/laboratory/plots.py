"""Plots of an audit of noise: what each rule gets wrong, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_INCHES = (9.0, 4.2)


def plots(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw a report's plots as SVG files; the files.

    Raises:
        OSError: if the folder cannot be written.
    """
    mpl.use("svg")
    folder.mkdir(parents=True, exist_ok=True)
    count = report["candidates"]
    draw = {
        "false_wins.svg": (
            f"Searches among {count} identical kernels that claim a win",
            "search_false_win",
        ),
        "found.svg": (f"Searches that find one kernel of 1.05x among {count}", "found_1.05"),
    }
    files = []
    for name, (title, key) in draw.items():
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.subplots()
        _bars(axes, [row for row in report["rules"] if row["error"] is None], key)
        axes.set_title(title)
        axes.set_ylabel("share of searches")
        files.append(folder / name)
        figure.savefig(files[-1])
    figure = Figure(figsize=_INCHES, layout="constrained")
    _power(figure.subplots(), report)
    files.append(folder / "power.svg")
    figure.savefig(files[-1])
    return files


def _bars(axes: Axes, rows: list[Mapping[str, Any]], key: str) -> None:
    """Groups of bars: a group a rule, a bar a clock."""
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    clocks = list(dict.fromkeys(row["clock"] for row in rows))
    width = 0.8 / len(clocks)
    for number, clock in enumerate(clocks):
        values = {row["rule"]: row[key] for row in rows if row["clock"] == clock}
        places = [place + (number - (len(clocks) - 1) / 2) * width for place in range(len(rules))]
        axes.bar(places, [values[rule] for rule in rules], width, label=clock)
    axes.set_xticks(range(len(rules)), rules)
    axes.set_ylim(0, 1.02)
    axes.legend(fontsize="small")


def _power(axes: Axes, report: Mapping[str, Any]) -> None:
    """How often our rule finds a faster kernel, by how much faster it is."""
    speedups = [1.0, *map(float, report["power"])]
    shares = [report["search_false_win"], *report["power"].values()]
    axes.plot(speedups, shares, marker="o", label="simulated, among many")
    if "power_real" in report:
        real = report["power_real"]
        axes.plot(
            [float(s) for s in real], list(real.values()), marker="s", label="this machine, alone"
        )
    axes.set_xlabel("true speedup")
    axes.set_ylabel("share claimed as a win")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title("What our rule finds")
    axes.legend()
