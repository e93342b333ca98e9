"""``record``: measure a whole knob space into a landscape's file, which can be replayed.

While it runs, every configuration that is settled is a line of ``FILE.part``, in the project's own
format; a kill loses at most the one being measured, and the same command goes on. At the end the
lines become the file, in the format of its ending, and the same command with a greater ``limit``
takes it up again: what is known is what stands in either, so that the new file never has less than
the old one. Both say which campaign they are of, and if either is of another nothing is written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernelwright.configs.build import Built, build
from kernelwright.configs.entries import entry_of
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.places import to_write
from kernelwright.env.landscape.jsonl import header_of, read_jsonl, row_of
from kernelwright.env.landscape.open import read_landscape
from kernelwright.env.landscape.record import Entry, Landscape, LandscapeError
from kernelwright.env.landscape.save import format_of, render, save
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.env.types import (
    Candidate,
    ExtentRange,
    KnobPayload,
    Reference,
    Request,
    Role,
    Stage,
)
from kernelwright.search.campaign import JudgeError

# What changes nothing about a measurement.
_NOT_IDENTITY = ("name", "driver", "agents", "budget", "stop", "batch", "workers")
_CAMPAIGN = "campaign"
_AT_ONCE = 64


@dataclass(frozen=True)
class _Job:
    """What is measured, in which order, into which file."""

    built: Built
    space: KnobSpace
    order: tuple[int, ...]
    identity: str
    out: Path
    samples: int

    @property
    def part(self) -> Path:
        return self.out.with_name(f"{self.out.name}.part")

    @property
    def path(self) -> str:
        return str(self.out)


def record(
    config: str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    overrides: Sequence[str] = (),
    limit: int | None = None,
    samples: int = 5,
    observe: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Measure the space of a campaign, or go on with it, and return what ``record --json`` prints.

    Args:
        config: a campaign file, a shipped name or a mapping.
        out: the landscape's file; its ending says the format.
        overrides: ``a.b=value`` each, over the file.
        limit: how many configurations at most, in an order that the campaign's seed decides.
        samples: times of each: pairs of one screen on ``cpu``, screens elsewhere.
        observe: called with the number done, the number in all and the latest configuration.

    Raises:
        ConfigError: if the campaign is refused, the file is another campaign's or cannot hold it.
        JudgeError: if the judge fails.
    """
    job = _job(config, Path(out), overrides, limit, samples)
    to_write(out)
    wanted = [job.space.candidate(index) for index in job.order]
    unsettled = 0
    with _journal(job) as journal:
        known = _known(job)
        done = dict(known)
        todo = {i: c for i, c in enumerate(wanted) if c.payload not in known}
        for candidate, entry in _measured(job, todo):
            unsettled += entry is None
            if entry is not None:
                done[entry.knobs] = entry
                journal.append(entry)
            if observe is not None:
                observe(len(done), len(wanted), str(candidate))
        return _finished(job, known, done, unsettled)


def _finished(
    job: _Job,
    known: Mapping[KnobPayload, Entry],
    done: Mapping[KnobPayload, Entry],
    unsettled: int,
) -> dict[str, Any]:
    """The file of all that is known, in place of the journal, and the summary."""
    wanted = [job.space.candidate(index) for index in job.order]
    kept = [done[c.payload] for c in wanted if c.payload in done]  # type: ignore[index]
    asked = {candidate.payload for candidate in wanted}
    kept += [entry for knobs, entry in known.items() if knobs not in asked]
    if not kept:
        raise JudgeError("no configuration could be measured: the host was too noisy")
    landscape = _landscape(job, tuple(kept))
    lost = save(landscape, job.out)
    job.part.unlink(missing_ok=True)
    return _summary(job, landscape, measured=len(done) - len(known), unsettled=unsettled, lost=lost)


def _job(config: Any, out: Path, overrides: Sequence[str], limit: int | None, samples: int) -> _Job:
    campaign = read_config(config, overrides)
    built = build(campaign)
    if built.target.missing:
        found = "none on this machine"
        raise campaign.document.error(("target",), " and ".join(built.target.missing), found)
    if not is_listed(built.space):
        expected = "a space that can be listed (knobs or template)"
        raise campaign.document.error(("space", "kind"), expected, built.resolved["space"]["kind"])
    workloads = built.problem.workloads
    ranged = any(isinstance(e, ExtentRange) for w in workloads for _, e in w.extents)
    if len(workloads) != 1 or ranged:
        found = ", ".join(w.label for w in workloads)
        raise campaign.document.error(("problem",), "one workload of fixed extents", found)
    order = np.random.default_rng(built.plan.seed).permutation(built.space.valid).tolist()
    same = {k: v for k, v in built.resolved.items() if k not in _NOT_IDENTITY}
    same |= {"machine": _machine(built), "samples": samples}
    identity = json.dumps(same, sort_keys=True)
    job = _Job(built, built.space, tuple(order[:limit]), identity, out, samples)
    first = Entry(job.space.candidate(order[0]).payload, (1.0,), unit="ns")  # type: ignore[arg-type]
    try:
        form = format_of(out)
        if form == "t1":
            raise LandscapeError(f"{out}: expected a format of results, found T1")
        # Before hours are spent on what the file cannot hold.
        for each in (form, "jsonl"):
            render(_landscape(job, (first,)), each)
    except LandscapeError as error:
        raise ConfigError(str(out), None, "--out", "a file that can hold it", str(error)) from None
    return job


def _machine(built: Built) -> str:
    target = built.target
    recorded = getattr(getattr(target, "landscape", None), "device", None)
    named = getattr(target, "fingerprint", None) or recorded
    return str(named or (target.device.name if target.device else ""))


def _known(job: _Job) -> dict[KnobPayload, Entry]:
    """What earlier runs have measured: the finished file's configurations and the journal's.

    Raises:
        ConfigError: if either is of another campaign, or of none.
    """
    known: dict[KnobPayload, Entry] = {}
    for path in (job.out, job.part):
        if path.exists() and path.stat().st_size:
            known |= {entry.knobs: entry for entry in _ours(job, path).entries}
    return known


def _ours(job: _Job, path: Path) -> Landscape:
    """The landscape of a file that this campaign was recorded into."""
    expected = "a new file, or one that this campaign was recorded into"
    try:
        found = _read(path)
    except LandscapeError as error:
        raise ConfigError(job.path, None, "--out", expected, str(error)) from None
    theirs = dict(found.metadata).get(_CAMPAIGN)
    if theirs != job.identity:
        raise ConfigError(str(path), None, "--out", expected, _difference(theirs, job.identity))
    return found


def _read(path: Path) -> Landscape:
    return read_jsonl(path) if path.suffix == ".part" else read_landscape(path)


def _difference(theirs: object, ours: str) -> str:
    try:
        old, new = json.loads(str(theirs)), json.loads(ours)
    except (ValueError, RecursionError):
        old = None
    if not isinstance(theirs, str) or not isinstance(old, dict):
        return "a file that names no campaign"
    keys = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
    return f"another campaign's: {', '.join(keys)} of it differ"


class _Journal:
    """Appends settled configurations to a file, one line each."""

    def __init__(self, file: IO[str], job: _Job, *, started: bool) -> None:
        self._file, self._job, self._started = file, job, started

    def append(self, entry: Entry) -> None:
        """Write one line, so that a crash after it does not lose it."""
        if not self._started:
            header = header_of(_landscape(self._job, (entry,)), "ns")
            self._file.write(json.dumps(header, ensure_ascii=False) + "\n")
            self._started = True
        self._file.write(json.dumps(row_of(entry, "ns"), ensure_ascii=False) + "\n")
        self._file.flush()


@contextmanager
def _journal(job: _Job) -> Iterator[_Journal]:
    """The journal, for this process alone, without the line that a kill broke off.

    Nobody's line is cut before the lock is held; one that stays empty is not left behind.
    """
    with job.part.open("a+b") as lock, job.part.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another one may have finished, and its journal be gone, since this one was opened.
            if not os.path.samestat(os.fstat(file.fileno()), job.part.stat()):
                raise FileNotFoundError
        except OSError:
            expected = "a file that nobody else records into"
            raise ConfigError(str(job.part), None, "--out", expected, "a running one") from None
        lock.seek(0)
        data = lock.read()
        whole = data[: data.rfind(b"\n") + 1]
        # A header alone says nothing, and may be another campaign's.
        whole = whole if whole.count(b"\n") > 1 else b""
        if whole != data:
            lock.truncate(len(whole))
        try:
            yield _Journal(file, job, started=bool(whole))
        finally:
            if job.part.exists() and not job.part.stat().st_size:
                job.part.unlink()


def _measured(job: _Job, todo: Mapping[int, Candidate]) -> Iterator[tuple[Candidate, Entry | None]]:
    """Every candidate, by its place in the order, with its entry, or None where the host was too
    noisy to say. The place is the trial's number, so that a simulated drift is the same after a
    kill.
    """
    plan, target = job.built.plan, job.built.target
    against = (Reference(Role.BASELINE, plan.baseline.candidate),)
    repeats = job.samples if target.deterministic else 1
    size = _AT_ONCE if target.deterministic else 1
    places = list(todo)
    for start in range(0, len(places), size):
        chunk = places[start : start + size]
        requests = [
            Request(
                todo[place],
                Stage.SCREEN,
                against,
                trial=place,
                pairs=1 if target.deterministic else job.samples,
                first_repeat=repeat,
                state=plan.state,
            )
            for place in chunk
            for repeat in range(repeats)
        ]
        verdicts = list(target.evaluate(requests))
        for turn, place in enumerate(chunk):
            found = verdicts[turn * repeats : (turn + 1) * repeats]
            yield todo[place], entry_of(todo[place], found)


def _landscape(job: _Job, entries: tuple[Entry, ...]) -> Landscape:
    baseline = job.built.plan.baseline.candidate.payload
    ran = {entry.knobs for entry in entries if entry.times}
    return Landscape(
        kernel=job.built.problem.name,
        device=_machine(job.built),
        extents=tuple(job.built.problem.workloads[0].fixed.items()),
        knob_names=job.space.names,
        entries=entries,
        default=baseline if baseline in ran else None,  # type: ignore[arg-type]
        values=tuple(knob.values for knob in job.space.knobs),
        objectives=("time",),
        metadata=((_CAMPAIGN, job.identity), *job.built.problem.traits),
    )


def _summary(
    job: _Job, landscape: Landscape, *, measured: int, unsettled: int, lost: tuple[str, ...]
) -> dict[str, Any]:
    ran = landscape.failed < len(landscape.entries)
    best = landscape.best if ran else None
    return {
        "out": str(job.out),
        "format": format_of(job.out),
        "valid": len(job.space.valid),
        "configurations": len(landscape.entries),
        "measured": measured,
        "failed": landscape.failed,
        "unsettled": unsettled,
        "best": None if best is None else {"knobs": dict(best.knobs), "ns": best.true_ns},
        "lost": list(lost),
    }
