"""What a campaign would do, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.display.words import light_line, recording


def check_text(plan: Mapping[str, Any]) -> str:
    """A campaign's plan for people."""
    space, budget = plan["space"], plan["budget"]
    share = ""
    if space["finite"] and plan["candidates"] is not None:
        share = f" ({100 * plan['candidates'] / space['valid']:.1f}% of the space)"
    outlay = plan["outlay"]
    is_estimate = budget["seconds"] is not None or (outlay and outlay["proposals"] is not None)
    about = "about" if is_estimate else "at most"
    count = "no number of" if plan["candidates"] is None else f"{about} {plan['candidates']:,}"
    size = (
        f"{space['combinations']:,} combinations, {space['valid']:,} valid"
        if space["finite"]
        else f"{space['kind']}, open"
    )
    limits = ", ".join(f"{v:g} {k}" for k, v in budget.items() if v is not None)
    # What has no extents has an empty label.
    work = " ".join([plan["problem"], *filter(None, [", ".join(plan["workloads"])])])
    rows = [
        f"{plan['name']}: {work} on {plan['target']} ({plan['evidence']})",
        *recording(plan["notes"]),
        f"space: {size}",
        f"budget: {limits}; {count} candidates{share} by {plan['driver']}",
        f"baseline: {plan['baseline']['name']} ({plan['baseline']['key']})",
        light_line(plan["bounds"]) + _reach(plan),
        f"then up to {plan['finalists']} finalists are confirmed, until one wins",
        "missing on this machine: " + (", ".join(plan["missing"]) or "nothing"),
    ]
    if outlay:
        rows.insert(3, outlay["says"])
    if plan["stop"]:
        rows.insert(-3, f"stops early at: {_stops(plan['stop'])}")
    warnings = [plan["warning"], *plan["beyond"]]
    return "\n".join([*(f"WARNING: {text}" for text in warnings if text), *rows])


def _reach(plan: Mapping[str, Any]) -> str:
    if not plan["bounds"]:
        return ""
    if plan["reach"] is None:
        return "; how near candidates come to it is not known before a run"
    return f"; the best of this space is at {plan['reach']:.3f} of it"


def _stops(stop: Mapping[str, Any]) -> str:
    words = []
    if "roofline" in stop:
        words.append(f"{stop['roofline']:g} of the roofline")
    if "target" in stop:
        goal = stop["target"]
        words.append(f"{goal['us']:g} us" if isinstance(goal, Mapping) else f"{goal:g}x")
    if "plateau" in stop:
        words.append(f"{stop['plateau']} trials without a better one")
    return ", ".join(words)


def check_tasks_text(plan: Mapping[str, Any]) -> str:
    """The plan of a campaign of tasks for people."""
    tasks, budget = plan["tasks"], plan["budget"]["trials"]
    kinds = ", ".join(sorted({task["problem"] for task in tasks if task["problem"]}))
    valid = sorted({task["valid"] for task in tasks if task["valid"]})
    size = " to ".join(f"{n:,}" for n in dict.fromkeys((valid[0], valid[-1]))) if valid else "open"
    weight = sum(task["weight"] for task in tasks)
    shared = "try" if plan["shared"] else "do not try"
    rows = [
        f"{plan['name']}: {len(tasks)} tasks of {kinds} on {plan['target']} ({plan['evidence']})",
        f"tasks: {tasks[0]['name']} to {tasks[-1]['name']}, weights add up to {weight:g}",
        f"spaces: {size} valid" if valid else f"spaces: {size}",
        f"budget: {budget} trials in batches of {plan['batch']} by {plan['driver']}, "
        f"{budget / len(tasks):.1f} a task on average",
        f"batches are given out by {plan['scheduler']['name']}; "
        f"tasks {shared} each other's best candidates",
        f"baseline: {plan['baseline']}",
        f"then up to {plan['finalists']} finalists of each task are confirmed, until one wins",
        "missing on this machine: " + (", ".join(plan["missing"]) or "nothing"),
    ]
    rows += [f"recording of {name}: {'; '.join(notes)}" for name, notes in plan["notes"].items()]
    rows += [f"no candidate in {t['name']}: {t['reason']}" for t in tasks if t["reason"]]
    return "\n".join(rows)
