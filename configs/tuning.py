"""From a campaign to its part of the tuning cache: the key, what is served, and what is kept."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import kernelwright
from kernelwright.configs.build import Built
from kernelwright.configs.resolve import plugin_files
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.problems.program import definition_of
from kernelwright.env.protocols import Repeats
from kernelwright.env.types import (
    Candidate,
    Evidence,
    ExtentRange,
    Language,
    Problem,
    Scalar,
    knob_candidate,
)
from kernelwright.evaluators.target import Target
from kernelwright.search.plan import Plan
from kernelwright.search.store import Store
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.trial import Event
from kernelwright.search.tuning.cache import Snapshot, TuningCache, choice_line
from kernelwright.search.tuning.identity import fallback_knobs, identity
from kernelwright.search.tuning.key import TuningKey, canonical, spans, split_machine, tensors_of
from kernelwright.search.tuning.near import Neighbour, near
from kernelwright.search.tuning.rows import row_of
from kernelwright.search.tuning.serving import CACHE, LOST, SERVED, Serving, Terms, records_of
from kernelwright.search.tuning.warm import FOUND, WarmStart, seeds_of

# The judge's settings that say what passes and what a time means; how many samples are taken does
# not.
_JUDGED_BY = ("profile", "check", "policy", "state")
_LOG = logging.getLogger(__name__)


def device_of(target: Target) -> tuple[str, str]:
    """The device of a target, and the compiler with its flags where it has one."""
    landscape = getattr(target, "landscape", None)
    named = getattr(target, "fingerprint", None) or getattr(landscape, "device", None)
    name = str(named or getattr(target.device, "name", "") or type(target).__name__)
    return split_machine(name)


def tuning_key(
    problem: Problem, target: Target, resolved: Mapping[str, Any], judge: Mapping[str, Any]
) -> TuningKey:
    """The key of a campaign's file.

    Args:
        problem: what is computed.
        target: where.
        resolved: the sections ``problem``, ``target`` and ``seed`` of the campaign with every
            default; the seed keys simulated noise.
        judge: its judge's section.
    """
    plain, seed = resolved["target"], resolved["seed"]
    device, toolchain = device_of(target)
    repeats = isinstance(target, Repeats) and target.repeats
    simulated = target.deterministic and (repeats or target.evidence is Evidence.RECORDED)
    # The names of data files are options, too, and a path is no part of what they hold.
    files, name = dict(target.files), str(plain["name"])
    told = ("name", "limit_s", *(("flags", "toolchain") if toolchain else ()))
    options = {
        option: value
        for option, value in plain.items()
        if option not in told and not (isinstance(value, str) and value in files)
    }
    defined = _definitions(problem)
    # Where nothing but a reference of one's own says what is computed, its file does; a version is
    # a promise that is soon forgotten while it is written.
    own = [name] if defined else [name, str(resolved["problem"]["name"])]
    for plugin in own:
        files |= plugin_files(plugin)
    return TuningKey(
        problem=problem.identity,
        tensors=tensors_of(problem),
        computes=_computes(problem, defined),
        workloads=tuple(map(spans, problem.workloads)),
        target=name.rpartition("/")[2],
        device=device,
        toolchain=f"{toolchain}; kernelwright {kernelwright.__version__}".removeprefix("; "),
        options=canonical(options),
        judge=canonical({name: judge[name] for name in _JUDGED_BY if name in judge}),
        seed=seed if simulated else None,
        files=tuple(sorted((Path(file).name, sha) for file, sha in files.items())),
    )


def _computes(problem: Problem, definitions: Sequence[str]) -> str:
    texts = [repr(problem.error_model.bound), str(problem.exact_on_integers), *definitions]
    return hashlib.sha256(canonical(texts).encode()).hexdigest()[:32]


def _definitions(problem: Problem) -> list[str]:
    """What a problem computes, as loops, where it says so in tensors."""
    texts = []
    for workload in problem.workloads:
        if any(isinstance(extent, ExtentRange) for _, extent in workload.extents):
            continue
        try:
            texts.append(print_procedure(definition_of(problem, workload)))
        except CompilerError:
            continue
    return texts


def key_of(built: Built) -> TuningKey:
    """The key of a campaign's file in the cache."""
    return tuning_key(built.problem, built.target, built.resolved, built.resolved["judge"])


def declared_defaults(problem: Problem, target: Target) -> dict[str, Scalar]:
    """What a knob that a record lacks stands for; of a template that is what its text does without
    the macro, whatever the campaign's own default is (see ``search/tuning/identity.py``).
    """
    if problem.template is not None:
        return fallback_knobs(problem)
    return dict(target.unscheduled(problem))


def identify(problem: Problem) -> Callable[[Candidate], str]:
    """What candidates of a problem mean."""
    return partial(identity, problem)


def serving_of(built: Built, events: Sequence[Event] = ()) -> Serving | None:
    """What a campaign is served: what the cache holds when it starts, or what it held when it
    started, if ``events`` say that it has. None if it reads no cache.
    """
    section = built.resolved.get("cache")
    if section is None or not section["read"]:
        return None
    cache, key, plan = TuningCache(Path(section["folder"])), key_of(built), built.plan
    opening = next((e.data for e in events if e.kind == CACHE), None)
    snapshot, lost = _read(cache, key, None if opening is None else opening["size"]), None
    if opening is not None and snapshot.sha256 != opening["sha256"]:
        was, now = opening["size"], snapshot.size
        lost = f"{snapshot.path}: expected the {was} bytes of then, found {now} other ones"
    if any(e.kind == LOST for e in events):
        lost = lost or "it was lost in an earlier sitting"
    for fault in (*snapshot.faults, *filter(None, (lost,))):
        _LOG.warning("tuning cache: %s", fault)
    terms = Terms(
        identify=identify(built.problem),
        belongs=lambda candidate: not built.space.check(candidate),
        baseline=plan.baseline.candidate,
        defaults=declared_defaults(built.problem, built.target),
        deterministic=built.target.deterministic,
        pairs=plan.screen_pairs,
        state=plan.state,
        may_cut=plan.screen_cut is not None,
        is_template=built.problem.template is not None,
    )
    return Serving(snapshot, terms, lost)


def warm_start_of(built: Built, events: Sequence[Event] = ()) -> WarmStart | None:
    """What a campaign tries first because it did well under like keys: what the cache holds when it
    starts, or what it found then, if ``events`` say. None if it looks for nothing.
    """
    section = built.resolved.get("cache")
    if section is None or not section["read"] or not section["near"]:
        return None
    opening = next((e for e in events if e.kind == FOUND), None)
    if opening is not None:
        return WarmStart.of_event(opening)
    problem, target = built.problem, built.target
    defaults, device = declared_defaults(problem, target), device_of(target)[0]

    def current(neighbour: Neighbour) -> Candidate | None:
        candidate = Candidate(neighbour.language, neighbour.payload)
        if candidate.language is Language.KNOBS:
            candidate = knob_candidate({**defaults, **candidate.knobs})
        is_own = candidate.language is built.space.language
        return candidate if is_own and not built.space.check(candidate) else None

    if len(problem.workloads) > 1:
        return WarmStart(())
    known = near(problem, problem.workloads[0], device, folder=Path(section["folder"]))
    return WarmStart(seeds_of(known, current, section["near"]))


def _read(cache: TuningCache, key: TuningKey, size: int | None) -> Snapshot:
    """What is recorded for a key; nothing where that cannot be read, which is no reason to lose a
    run either.
    """
    try:
        return cache.read(key, size)
    except OSError as error:
        return Snapshot(cache.path(key), faults=(f"nothing was read: {error}",))


def plan_with_cache(built: Built, events: Sequence[Event] = ()) -> Plan:
    """The plan of a campaign with what the cache knows; ``events`` as of `serving_of`."""
    plan = replace(built.plan, serving=serving_of(built, events))
    warm = warm_start_of(built, events)
    if warm is None:
        return plan
    return replace(plan, make_driver=partial(warm.driver, built.plan.make_driver))


def keep(built: Built, store: Store, folder: Path, *, run: str) -> int:
    """Put what a campaign judged into the cache, and what it ended with; how many lines were new.

    Raises:
        OSError: if the folder cannot be written.
    """
    now, trials, events = time.time(), store.trials(), store.events()
    served = frozenset(e.slot for e in events if e.kind == SERVED)
    baseline = built.plan.baseline.candidate
    lines = [
        record.to_line()
        for record in records_of(trials, served, identify(built.problem), baseline, run=run, at=now)
    ]
    best = best_trial(trials)
    # A search that has ended; a noisy host may have kept its finals from a claim.
    if best is not None and any(e.kind == "stopped" for e in events):
        row = row_of(built.problem, built.resolved, summarise(store), best, now)
        lines.append(choice_line(row, run, now))
    return TuningCache(folder).append(key_of(built), lines)


def keep_or_warn(built: Built, store: Store, run: str) -> None:
    """`keep`, if the campaign does; what cannot be kept is no reason to lose a run."""
    section = built.resolved.get("cache")
    if section is None or not section["write"]:
        return
    try:
        keep(built, store, Path(section["folder"]), run=run)
    except OSError as error:
        _LOG.warning("tuning cache: nothing was kept: %s", error)
