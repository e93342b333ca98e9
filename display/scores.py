"""Comparisons of campaigns, and what runs show together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from kernelwright.display.tables import print_table
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.statistics import CONFIDENCE
from kernelwright.search.claims import in_figures


def print_comparison(console: Console, summary: Mapping[str, Any]) -> None:
    """A comparison's summary, as `search.comparing.compared` gives it: evaluations to each target,
    the best so far at the checkpoints, and what can be claimed.
    """
    console.print(f"{summary['work']}\n", soft_wrap=True)
    for target in summary["targets"]:
        headers = ("campaign", "runs", "solved", f"median to {100 * target['within']:g}%", *_LIMITS)
        rows = [
            (s["config"], s["runs"], s["solved"], s["median"], s["low"], s["high"])
            for s in target["campaigns"]
        ]
        print_table(console, headers, rows)
        for pair in target["pairs"]:
            console.print(pair["says"], soft_wrap=True)
        _print_costs(console, target["costs"], target["within"])
        console.print()
    points = [row["evaluations"] for row in summary["curves"][0]["best_at"]]
    rows = [
        (curve["config"], *(_ratio_text(row) for row in curve["best_at"]))
        for curve in summary["curves"]
    ]
    print_table(console, ("best so far / best known, after", *map(str, points)), rows)
    claims = summary["correction"]["claims"]
    if claims > 1:
        rate = summary["correction"]["error_rate"]
        console.print(
            f"\n{claims} claims share an error rate of {rate:.0%} (Holm's correction); intervals "
            "are each at 95%",
            soft_wrap=True,
        )


def _print_costs(console: Console, costs: Sequence[Mapping[str, Any]], within: float) -> None:
    """What models cost to a target: a column each, and what can be claimed."""
    if not costs:
        return
    words = [_WORDS.get(found["cost"], found["cost"]) for found in costs]
    headers = ("campaign", *(f"{word} to {100 * within:g}%" for word in words))
    by_campaign = zip(*(found["campaigns"] for found in costs), strict=True)
    rows = [(some[0]["config"], *map(_cost_text, some)) for some in by_campaign]
    console.print()
    print_table(console, headers, rows)
    for found in costs:
        for pair in found["pairs"]:
            console.print(pair["says"], soft_wrap=True)


def _cost_text(row: Mapping[str, float | None]) -> str:
    if row["median"] is None:
        return "-"
    median, low, high = (_amount(row[key]) for key in ("median", "low", "high"))
    return f"{median} ({low} to {high})"


def _amount(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


_WORDS = {"usd": "USD"}
_LIMITS = ("95% low", "95% high")


def _ratio_text(row: Mapping[str, float | None]) -> str:
    if row["median"] is None:
        return "none"
    if row["low"] is None or row["high"] is None:
        return f"{row['median']:.3f}"
    return f"{row['median']:.3f} ({row['low']:.3f}-{row['high']:.3f})"


def print_score(console: Console, scores: Mapping[str, Any]) -> None:
    """What runs show together, as `configs.scoring.score` gives it: run by run, then the scores."""
    if scores["warning"]:
        console.print(f"WARNING: {scores['warning']}", soft_wrap=True)
    rows = [
        (row["run"], row["status"] or "none", _speedup(row), _library(row))
        for row in scores["runs"]
    ]
    headers = ("run", "status", f"speedup ({CONFIDENCE:.0%} limits)", "against the library")
    print_table(console, headers, rows)
    if scores["missing"]:
        console.print(f"problems without a run: {scores['missing']}")
    console.print("\nfast_p, correct and more than p times as fast:")
    for row in scores["fast"]:
        console.print(_fast(row), soft_wrap=True)
    for line in _means(scores):
        console.print(line, soft_wrap=True)
    for note in scores["notes"]:
        console.print(f"NOTE: {note}", soft_wrap=True)


def _speedup(row: Mapping[str, Any]) -> str:
    found = row["speedup"]
    if found is None:
        return "-"
    if not row["confirmed"]:
        return f"{in_figures(found['estimate'])} in a screen"
    return _figures(found)


def _library(row: Mapping[str, Any]) -> str:
    if row["library_speedup"] is None:
        return "-"
    return f"{row['library'] or 'the library'} {_figures(row['library_speedup'])}"


def _figures(found: Mapping[str, Any]) -> str:
    return in_figures(found["estimate"], found["ci_low"], found["ci_high"])


def _fast(row: Mapping[str, Any]) -> str:
    """fast_p as claimed, and as published."""
    said = f"  p = {row['p']:g}: {Rate(row['count'], row['total'])} by claims"
    extra = f", {row['unclaimed']} of them no claim" if row["unclaimed"] else ""
    return f"{said}; {row['by_estimate']} by point estimates{extra}"


def _means(scores: Mapping[str, Any]) -> list[str]:
    """The geometric mean of all problems, and that of the confirmed ones beside what it leaves
    out.
    """
    count, total = scores["confirmed"]["count"], scores["confirmed"]["total"]
    mean, wins = scores["geometric_mean"], scores["wins"]
    at = f" at {CONFIDENCE:.0%}"
    figures = in_figures(mean["estimate"], mean["ci_low"], mean["ci_high"], at=at)
    lines = [f"geometric mean of all {total}: {figures}; wins ({wins}) as measured, the rest as 1x"]
    if count:
        mean = scores["geometric_mean_of_confirmed"]
        figures = in_figures(mean["estimate"], mean["ci_low"], mean["ci_high"], at=at)
        left_out = f"; leaves out {total - count} that failed" if count < total else ""
        lines.append(f"geometric mean of the {count} confirmed, as measured: {figures}{left_out}")
    return [*lines, f"evidence: {scores['evidence'] or 'none'}"]
