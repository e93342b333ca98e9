"""Running campaigns from Python: what the command line calls, and `kernelwright.run`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml

from kernelwright.configs.build import Built, build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.folder import claim, unused, worker_count, write, write_winner
from kernelwright.configs.fronts import front_of
from kernelwright.configs.load import check_document, read_config, read_document
from kernelwright.configs.reach import reach_of
from kernelwright.configs.replies import simulated_in
from kernelwright.configs.tasking import check_tasks, run_tasks, show_tasks
from kernelwright.configs.tasks import read_tasks
from kernelwright.configs.tuning import keep_or_warn, plan_with_cache
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.env.types import Reference, Request, Role, Stage, Verdict
from kernelwright.evaluators.target import notes_of
from kernelwright.search.campaign import Campaign, Progress
from kernelwright.search.claims import Names, claim_of, in_words
from kernelwright.search.executors import make_executor
from kernelwright.search.finals import confirm_request
from kernelwright.search.plan import Budget, StopRules
from kernelwright.search.store import DATABASE, MemoryStore, NotBegunError, SqliteStore
from kernelwright.search.summary import shown, summarise, warning
from kernelwright.search.tasks.summary import TASKS

# Trials of the short search that `check` times when a budget is in seconds.
PACE_TRIALS = 64
PACE_MEASURED = 4
# The most candidates that `check` speaks of.
MAX_PACED = 10_000_000


def run(
    config: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    workers: int | None = None,
    fresh: bool = False,
    observe: Callable[[Progress], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run a campaign, or go on with it, and return its summary (the object that ``run --json``
    prints).

    Args:
        config: a campaign file, a shipped name or a mapping.
        out: the run's folder, ``runs/NAME`` unless given.
        overrides: ``a.b=value`` each, over the file.
        workers: threads; never changes a result.
        fresh: start anew in ``NAME-2``… instead of going on.
        observe: called with the progress after everything that was recorded.
        announce: called with what the budget of a language model buys about, before it is asked.

    Raises:
        ConfigError: if the campaign is refused, or the folder holds another one.
        StoreError: if another process is running it.
    """
    document, place = read_document(config, overrides)
    if "tasks" in document.data:
        return run_tasks(read_tasks(document, place), out, workers, fresh=fresh, observe=observe)
    campaign = check_document(document, place)
    count = worker_count(campaign.file, workers)
    built = build(campaign)
    if built.missing:
        what = ("target",) if built.target.missing else ("agents", "backend")
        raise campaign.document.error(what, " and ".join(built.missing), "none on this machine")
    folder = Path(out) if out is not None else Path("runs") / campaign.file.name
    if fresh:
        folder = unused(folder)
    resolved = {key: value for key, value in built.resolved.items() if key != "workers"}
    with SqliteStore(folder / DATABASE) as store:
        extension = claim(store, folder, resolved, built)
        write(folder / "config.yaml", yaml.safe_dump(built.resolved, sort_keys=False))
        events = store.events()
        if extension is not None or not events or events[-1].kind != "finished":
            executor = make_executor(count)
            plan = plan_with_cache(built, events)
            outlay = built.outlay() if announce is not None else None
            if announce is not None and outlay is not None:
                announce(outlay.sentence)
            try:
                Campaign(plan, store, executor=executor, extension=extension, observe=observe).run()
            finally:
                keep_or_warn(built, store, run=f"{campaign.file.name} in {folder.name}")
        front = front_of(built.resolved, store.trials(), lambda: built)
        summary = {**summarise(store), "front": front, "simulated": simulated_in(store)}
        summary |= {"name": campaign.file.name, "out": str(folder)}
        write_winner(folder, built, store, summary["best"])
        return summary


def show(folder: str | Path) -> dict[str, Any]:
    """The summary of a run's folder, finished or not.

    Raises:
        StoreError: if there is no run.
    """
    folder = Path(folder)
    if folder.name == DATABASE:
        folder = folder.parent
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        meta = store.meta()
        if not meta:
            raise NotBegunError(folder / DATABASE)
        if TASKS in meta:
            return show_tasks(store, folder)
        config = json.loads(meta.get("config", "{}"))
        front = front_of(config, store.trials(), lambda: plan_of(folder / "config.yaml"))
        summary = {**summarise(store), "front": front, "simulated": simulated_in(store)}
        return {**summary, "name": config.get("name"), "out": str(folder)}


def judged_again(folder: str | Path, number: int) -> dict[str, Any]:
    """A trial of a run judged once more, with new secrets, at the stage that it came to: so a claim
    is made again, at the error rate that it had, and a refusal replayed. Nothing is recorded.

    Returns:
        ``trial``, ``candidate``, ``stage`` (``screen`` or ``confirm``), and the verdicts of
        ``then`` (its latest) and ``now``, each with ``status code evidence claim facts log``;
        ``claim`` is the verdict in words.

    Raises:
        StoreError: if there is no run.
        ConfigError: if it has no such trial, or its campaign is refused by now.
    """
    folder = Path(folder)
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        trials, names = store.trials(), Names.stored(store.meta())
    trial = next((t for t in trials if t.number == number), None)
    if trial is None:
        known = f"one of trials 0 to {len(trials) - 1}" if trials else "a run that has trials"
        raise ConfigError(str(folder), None, "--replay", known, str(number))
    built = plan_of(folder / "config.yaml")
    confirmed = trial.verdict(Stage.CONFIRM)
    if confirmed is None:
        request = Request(
            trial.candidate,
            Stage.SCREEN,
            (Reference(Role.BASELINE, built.plan.baseline.candidate),),
            trial=number,
            pairs=built.plan.screen_pairs,
            state=built.plan.state,
        )
    else:
        request = confirm_request(built.plan.contest, trial, 0)
        if confirmed.terms is not None:
            request = replace(request, alpha=confirmed.terms.alpha)
    (now,) = built.plan.evaluator.evaluate([request])
    return {
        "trial": number,
        "candidate": shown(trial.candidate),
        "stage": request.stage.value,
        "then": _said(trial.verdicts[-1][1], claim_of(trial, names)),
        "now": _said(now, in_words(now, names)),
    }


def _said(verdict: Verdict, claim: str) -> dict[str, Any]:
    return {
        "status": verdict.status.value,
        "code": verdict.code,
        "evidence": verdict.evidence,
        "claim": claim,
        "facts": dict(verdict.facts),
        "log": verdict.log,
    }


def plan_of(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> Built:
    """A campaign's plan without running it.

    Raises:
        ConfigError: if the campaign is refused.
    """
    return build(read_config(config, overrides))


def check(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Validate a campaign and say what it would do: the object that ``check --json`` prints.

    Raises:
        ConfigError: if the campaign is refused.
    """
    document, place = read_document(config, overrides)
    if "tasks" in document.data:
        return check_tasks(read_tasks(document, place))
    built = build(check_document(document, place))
    space, budget = built.space, built.plan.budget
    finite = is_listed(space)
    bought = [len(space.valid)] if is_listed(space) else []
    if budget.trials is not None:
        bought.append(budget.trials)
    outlay = built.outlay()
    if outlay is not None and outlay.proposals is not None:
        bought.append(outlay.proposals)
    # How fast a model answers would have to be paid for.
    if budget.seconds is not None and not built.missing and outlay is None:
        limit = min(bought, default=MAX_PACED)
        bought.append(int(min(limit, budget.seconds * _trials_a_second(built))))
    return {
        "name": built.resolved["name"],
        "warning": warning(built.resolved),
        "problem": built.problem.identity,
        "workloads": [w.label for w in built.problem.workloads],
        "target": built.resolved["target"]["name"],
        "evidence": built.target.evidence.value,
        "notes": list(notes_of(built.target)),
        "driver": built.resolved["driver"]["name"],
        "space": {
            "kind": built.resolved["space"]["kind"],
            "combinations": space.combinations if isinstance(space, KnobSpace) else None,
            "valid": len(space.valid) if is_listed(space) else None,
            "finite": finite,
        },
        "candidates": min(bought, default=None),
        "outlay": None if outlay is None else {**asdict(outlay), "says": outlay.sentence},
        "budget": asdict(budget),
        "baseline": {"name": built.plan.baseline.name, "key": built.plan.baseline.candidate.key},
        "finalists": built.plan.confirm.finalists,
        "stop": built.resolved.get("stop", {}),
        **reach_of(built),
        "missing": list(built.missing),
    }


def _trials_a_second(built: Built) -> float:
    """The pace of a short search that is thrown away; a few trials are enough where each takes
    long.
    """
    count = PACE_TRIALS if built.target.deterministic else PACE_MEASURED
    plan = replace(built.plan, budget=Budget(trials=count), stop=StopRules())
    began, store = time.perf_counter(), MemoryStore()
    Campaign(plan, store, until=lambda trial: trial.number == count - 1).run()
    return len(store.trials()) / (time.perf_counter() - began)
