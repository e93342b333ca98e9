"""Running a campaign of tasks: what ``run``, ``show`` and ``check`` do with one.

Its folder holds the turns in ``run.sqlite``, the resolved campaign, ``best.json`` with the winners
by task, and a folder a task, which is that of an ordinary run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from kernelwright.configs.build import Built
from kernelwright.configs.folder import (
    FINISHED_BEFORE,
    claim,
    claim_config,
    free,
    keep_prompt,
    unused,
    worker_count,
    write,
    write_winner,
)
from kernelwright.configs.replies import simulated_in
from kernelwright.configs.tasks import Member, TasksCampaign
from kernelwright.configs.tuning import keep_or_warn, plan_with_cache
from kernelwright.env.spaces.knobs import is_listed
from kernelwright.evaluators.target import notes_of
from kernelwright.search.campaign import Extension, Progress
from kernelwright.search.executors import make_executor
from kernelwright.search.store import DATABASE, SqliteStore, Store, is_begun
from kernelwright.search.tasks.campaign import FINISHED, Task, TaskCampaign
from kernelwright.search.tasks.summary import TASKS, summarise_tasks


def run_tasks(
    campaign: TasksCampaign,
    out: str | Path | None,
    workers: int | None,
    *,
    fresh: bool,
    observe: Callable[[Progress], None] | None,
    announce: Callable[[str], None] | None,
) -> dict[str, Any]:
    """Run a campaign of tasks, or go on with it, and return its summary.

    Raises:
        ConfigError: if this machine lacks something, or the folder holds another campaign.
        StoreError: if another process is running it.
    """
    count = worker_count(campaign.file, workers)
    _refuse_missing(campaign)
    folder = Path(out) if out is not None else Path("runs") / campaign.file.name
    folder = unused(folder) if fresh else folder
    with ExitStack() as stack:
        store = stack.enter_context(SqliteStore(free(folder) / DATABASE))
        about = {TASKS: json.dumps({m.name: _about(m) for m in campaign.members})}
        made = [m.built for m in campaign.members if m.built is not None]
        reach = {key for built in made for key in built.reaching}
        extension = claim_config(store, folder, _identity(campaign), about, reach=reach)
        write(folder / "config.yaml", yaml.safe_dump(campaign.resolved, sort_keys=False))
        events = store.events()
        tasks = [_task(campaign, m, folder, stack) for m in campaign.members if m.built is not None]
        if extension is not None or not events or events[-1].kind != FINISHED:
            _search(campaign, tasks, store, folder, count, extension, observe)
        elif announce is not None:
            announce(FINISHED_BEFORE)
        stores = {task.name: task.store for task in tasks}
        summary = _summary(store, stores, folder)
        winners = {row["name"]: row["best"] for row in summary["tasks"]}
        for member in campaign.members:
            if member.built is not None:
                place, best = folder / member.name, winners[member.name]
                write_winner(place, member.built, stores[member.name], best)
        write(folder / "best.json", json.dumps(winners, indent=2) + "\n")
        return summary


def _search(
    campaign: TasksCampaign,
    tasks: list[Task],
    store: Store,
    folder: Path,
    workers: int,
    extension: Extension | None,
    observe: Callable[[Progress], None] | None,
) -> None:
    """Run what is left of a campaign; each task reads and fills its own part of the cache."""
    made = {m.name: m.built for m in campaign.members if m.built is not None}
    try:
        TaskCampaign(
            [replace(t, plan=plan_with_cache(made[t.name], t.store.events())) for t in tasks],
            store,
            scheduler=campaign.scheduler.factory(**campaign.scheduler.options),
            trials=campaign.file.budget.trials or 0,
            share=campaign.share,
            executor=make_executor(workers),
            extension=extension,
            observe=observe,
        ).run()
    finally:
        for task in tasks:
            run = f"{campaign.file.name}.{task.name} in {folder.name}/{task.name}"
            keep_or_warn(made[task.name], task.store, run=run)


def _refuse_missing(campaign: TasksCampaign) -> None:
    for member in campaign.members:
        if member.built is not None and member.built.missing:
            what = ("target",) if member.built.target.missing else ("agents", "backend")
            missing = " and ".join(member.built.missing)
            raise campaign.document.error(what, missing, "none on this machine")


def _about(member: Member) -> dict[str, Any]:
    """What reports say of a task."""
    built = member.built
    return {
        "weight": member.weight,
        "problem": None if built is None else built.problem.identity,
        "workloads": [] if built is None else [w.label for w in built.problem.workloads],
        "reason": member.reason,
    }


def _identity(campaign: TasksCampaign) -> dict[str, Any]:
    """The resolved campaign as it is compared with that of a folder: tasks by name."""
    resolved = {key: value for key, value in campaign.resolved.items() if key != "workers"}
    tasks = dict(resolved["tasks"])
    listed = enumerate(tasks.pop("listed"))
    named = {task["name"]: {**task, "number": number} for number, task in listed}
    return {**resolved, "tasks": {**tasks, "listed": named}}


def _task(campaign: TasksCampaign, member: Member, folder: Path, stack: ExitStack) -> Task:
    """A task with its folder, which is made or claimed."""
    built = member.built
    assert built is not None
    place = folder / member.name
    store = stack.enter_context(SqliteStore(place / DATABASE))
    # A run of this folder alone would know neither its seeds nor its turns.
    own = {"task": {"of": campaign.file.name, "weight": member.weight}}
    resolved = {key: value for key, value in built.resolved.items() if key != "workers"}
    extension = claim(store, place, resolved | own, built)
    write(place / "config.yaml", yaml.safe_dump(built.resolved, sort_keys=False))
    keep_prompt(place, built)
    floor_ns = sum(built.target.floor_ns(w) for w in built.problem.workloads)
    return Task(member.name, member.weight, built.plan, store, member.place, floor_ns, extension)


def show_tasks(store: SqliteStore, folder: Path) -> dict[str, Any]:
    """The summary of a run's folder, finished or not; ``store`` is that of the turns."""
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        for name in json.loads(store.meta()[TASKS]):
            path = folder / name / DATABASE
            if is_begun(path):
                stores[name] = stack.enter_context(SqliteStore(path, readonly=True))
        return _summary(store, stores, folder)


def _summary(store: SqliteStore, stores: dict[str, Store], folder: Path) -> dict[str, Any]:
    meta = store.meta()
    config = json.loads(meta["config"])
    about = {
        "name": config["name"],
        "out": str(folder),
        "scheduler": config["tasks"]["scheduler"]["name"],
        "shared": config["tasks"]["share"],
        "simulated": simulated_in(*stores.values()),
    }
    return {**summarise_tasks(store, json.loads(meta[TASKS]), stores), **about}


def check_tasks(campaign: TasksCampaign) -> dict[str, Any]:
    """What a campaign of tasks would do: the object that ``check --json`` prints."""
    members, budget = campaign.members, campaign.file.budget
    first = next(m.built for m in members if m.built is not None)
    missing = {each: None for m in members if m.built for each in m.built.missing}
    return {
        "name": campaign.file.name,
        "target": first.resolved["target"]["name"],
        "evidence": first.target.evidence.value,
        "notes": {
            m.name: list(notes) for m in members if m.built and (notes := notes_of(m.built.target))
        },
        "driver": first.resolved["driver"]["name"],
        "tasks": [{"name": m.name, **_about(m), "valid": _valid(m.built)} for m in members],
        "budget": budget.model_dump(),
        "batch": campaign.file.batch,
        "scheduler": campaign.scheduler.plain,
        "shared": campaign.share,
        "baseline": first.plan.baseline.name,
        "finalists": asdict(first.plan.confirm)["finalists"],
        "missing": list(missing),
    }


def _valid(built: Built | None) -> int | None:
    """How many configurations a task may choose from; None where its space is open."""
    if built is None:
        return 0
    return len(built.space.valid) if is_listed(built.space) else None
