"""Campaign files with a section ``tasks``: one campaign a task, made from what all of them share.

A task's campaign is the file without the section, with the task's options over those of problem and
target, a seed of its own (or all tasks would draw the same configurations and the same noise), and
the name ``CAMPAIGN.TASK``. A fault in a task's option is reported where the file has it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelwright.configs.build import Built, build, check_hashes
from kernelwright.configs.errors import ConfigError, NoCandidatesError
from kernelwright.configs.load import Chosen, check_document, check_file, choose
from kernelwright.configs.schema import MAX_SEED, CampaignFile, TaskParts
from kernelwright.configs.tree import Document

# Each has a store of its own open while a run lasts, and a process may open about 1,000 files.
MAX_TASKS = 200
# The parts of a campaign that a task may say something of.
OPTIONS = ("problem", "target")
# How far apart tasks lie, in doublings, that differ in more than numbers.
FAR = 32.0

Path_ = tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """A task: its parts of the file, and its campaign built; or why it has no candidates."""

    name: str
    weight: float
    options: dict[str, dict[str, Any]]
    built: Built | None
    reason: str | None
    place: tuple[float, ...] = ()


@dataclass(frozen=True)
class TasksCampaign:
    """A checked campaign of tasks."""

    file: CampaignFile
    document: Document
    members: tuple[Member, ...]
    scheduler: Chosen
    share: bool
    hashes: dict[str, str]

    @property
    def resolved(self) -> dict[str, Any]:
        """The campaign with every default, each task listed: what ``config.yaml`` holds."""
        first = next(m.built for m in self.members if m.built is not None)
        same = {key: value for key, value in first.resolved.items() if key not in OPTIONS}
        plain = {key: _shared(self.document, key) for key in OPTIONS}
        listed = [
            {"name": m.name, "weight": m.weight, **{k: v for k, v in m.options.items() if v}}
            for m in self.members
        ]
        tasks = {"listed": listed, "scheduler": self.scheduler.plain, "share": self.share}
        own = {"name": self.file.name, "seed": self.file.seed, "hashes": self.hashes}
        merged = {**same, **plain, **own, "tasks": tasks}
        return {key: merged[key] for key in CampaignFile.model_fields if key in merged}


def read_tasks(document: Document, folder: Path) -> TasksCampaign:
    """Check a campaign of tasks and make all its parts; names relative to ``folder``.

    Raises:
        ConfigError: at the first fault; also where no task has a candidate.
    """
    file = check_file(document)
    assert file.tasks is not None
    files: dict[str, str] = {}
    path = ("tasks", "scheduler")
    scheduler = choose(document, path, file.tasks.scheduler, folder, files)
    entries = _entries(document, file)
    _check_budget(document, file, len(entries))
    built = [_member(document, folder, file, entry) for entry in entries]
    if all(member.built is None for member in built):
        expected = "a task with a valid candidate"
        raise document.error(("tasks",), expected, built[0].reason or "none")
    hashes = {**files}
    for member in built:
        hashes |= member.built.resolved["hashes"] if member.built is not None else {}
    check_hashes(document, file.hashes, hashes)
    members = tuple(replace(m, place=at) for m, at in zip(built, _places(built), strict=True))
    return TasksCampaign(
        file, document, members, scheduler, file.tasks.share, dict(sorted(hashes.items()))
    )


def _shared(document: Document, key: str) -> dict[str, Any]:
    return dict(document.get(key) or {})


def _check_budget(document: Document, file: CampaignFile, count: int) -> None:
    budget = file.budget
    if budget.trials is None:
        expected = "the key 'trials', which tasks share"
        raise document.error(("budget",), expected, "none")
    for key in ("seconds", "calls", "tokens", "usd"):
        if getattr(budget, key) is not None:
            expected = "a budget of trials alone, because tasks share it"
            raise document.error(("budget", key), expected, repr(key))
    if budget.trials < count * file.batch:
        expected = f"at least {count * file.batch} ({count} tasks x a batch of {file.batch})"
        raise document.error(("budget", "trials"), expected, str(budget.trials))


@dataclass(frozen=True)
class _Entry:
    """A task as the file has it, and where it has each of the options."""

    name: str
    weight: float
    path: Path_
    options: dict[str, dict[str, Any]]
    origins: dict[Path_, Path_]


def _entries(document: Document, file: CampaignFile) -> list[_Entry]:
    """All tasks in the file's order: those that are listed, then the product, its last factor
    fastest.
    """
    tasks = file.tasks
    assert tasks is not None
    entries = [
        _joined(each.name, [(("tasks", "listed", str(i)), each)])
        for i, each in enumerate(tasks.listed)
    ]
    count = len(entries) + math.prod(map(len, tasks.product)) * bool(tasks.product)
    if not 1 <= count <= MAX_TASKS:
        raise document.error(("tasks",), f"1 to {MAX_TASKS} tasks", f"{count:,}")
    factors = [
        [(("tasks", "product", str(i), name), parts) for name, parts in factor.items()]
        for i, factor in enumerate(tasks.product)
    ]
    combined = itertools.product(*factors) if factors else ()
    entries += [_joined("-".join(path[-1] for path, _ in parts), parts) for parts in combined]
    seen: dict[str, _Entry] = {}
    for entry in entries:
        if entry.name.lower() in seen:  # they name folders
            raise document.error(entry.path, "each task's name once", f"{entry.name!r} again")
        seen[entry.name.lower()] = entry
    return entries


def _joined(name: str, parts: Sequence[tuple[Path_, TaskParts]]) -> _Entry:
    """One task out of parts, whose weights multiply and whose options add up."""
    options: dict[str, dict[str, Any]] = {key: {} for key in OPTIONS}
    origins: dict[Path_, Path_] = {}
    for path, part in parts:
        for key, given in (("problem", part.problem), ("target", part.target)):
            options[key] |= given
            origins |= {(key, option): (*path, key, option) for option in given}
    weight = math.prod(part.weight for _, part in parts)
    return _Entry(name, weight, parts[-1][0], options, origins)


def task_seed(seed: int, name: str) -> int:
    """The seed of a task: another one for every name."""
    text = f"{seed}/{name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % MAX_SEED


def _member(document: Document, folder: Path, file: CampaignFile, entry: _Entry) -> Member:
    data = {k: v for k, v in document.data.items() if k not in ("tasks", "hashes")}
    data |= {key: _shared(document, key) | entry.options[key] for key in OPTIONS}
    data |= {"name": f"{file.name}.{entry.name}", "seed": task_seed(file.seed, entry.name)}
    lines = dict(document.lines)
    for made, origin in entry.origins.items():
        for path in [path for path in document.lines if path[: len(origin)] == origin]:
            lines[made + path[len(origin) :]] = document.lines[path]
    try:
        own = Document(document.file, data, lines, document.overrides)
        built, reason = build(check_document(own, folder)), None
    except NoCandidatesError as error:
        built, reason = None, error.found
    except ConfigError as error:
        raise _placed(document, entry, error) from error.__cause__
    return Member(entry.name, entry.weight, entry.options, built, reason)


def _placed(document: Document, entry: _Entry, error: ConfigError) -> ConfigError:
    """The error of a task's campaign, where the file has what is wrong."""
    path = tuple(error.path.split(".")) if error.path else ()
    if path[:1] == ("name",):
        path = entry.path
    for end in range(len(path), 0, -1):
        if path[:end] in entry.origins:
            path = entry.origins[path[:end]] + path[end:]
            break
    found = f"{error.found} in task {entry.name}"
    return document.error(path, error.expected, found, error.nearest)


def _places(members: Sequence[Member]) -> list[tuple[float, ...]]:
    """Where tasks lie among one another: log2 of the numbers among their problems' options; tasks
    that differ in anything else of their problems are far apart.
    """
    given = [_problem(member) for member in members]
    kinds = [
        json.dumps({k: v for k, v in g.items() if not _is_size(v)}, sort_keys=True) for g in given
    ]
    names = sorted({k for g in given for k, v in g.items() if _is_size(v)})
    known = sorted(set(kinds)) if len(set(kinds)) > 1 else []
    return [
        (
            *(math.log2(g[k]) if _is_size(g.get(k)) else 0.0 for k in names),
            *(FAR * (kind == k) for k in known),
        )
        for g, kind in zip(given, kinds, strict=True)
    ]


def _problem(member: Member) -> Mapping[str, Any]:
    if member.built is None:
        return member.options["problem"]
    problem: Mapping[str, Any] = member.built.resolved["problem"]
    return problem


def _is_size(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
