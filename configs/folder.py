"""A run's folder: whose it is, and how files get into it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import kernelwright
from kernelwright.agents.kept import keep_templates
from kernelwright.configs.build import Built
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.schema import MAX_WORKERS, CampaignFile
from kernelwright.configs.winner import best_c
from kernelwright.evaluators.target import notes_of, speed_of_light
from kernelwright.search.campaign import Extension
from kernelwright.search.store import DATABASE, SqliteStore, Store
from kernelwright.search.summary import REACHED, best_trial, shown
from kernelwright.search.trial import MODEL_CALL

# A key, and its values before and now.
Difference: TypeAlias = tuple[str, Any, Any]

# What is announced of a run that has nothing left to do.
FINISHED_BEFORE = "already finished; --fresh starts another"


def worker_count(file: CampaignFile, given: int | None) -> int:
    """How many threads: those that were asked for, else those of the file.

    Raises:
        ConfigError: if it is no such number.
    """
    count = file.workers if given is None else given
    if not 1 <= count <= MAX_WORKERS:
        raise ConfigError("workers", None, "workers", f"1 to {MAX_WORKERS}", str(count))
    return count


def unused(folder: Path) -> Path:
    """The folder itself, or the first of ``NAME-2``, ``NAME-3``, … that holds no run."""
    folder = folder if folder.name else folder.resolve()
    number, out = 1, folder
    while (out / DATABASE).exists():
        number += 1
        out = folder.with_name(f"{folder.name}-{number}")
    return out


def free(folder: Path) -> Path:
    """The folder, if a run may be kept there: it holds one, or nothing, or is not there yet.

    Raises:
        ConfigError: if it holds something else.
    """
    if folder.is_dir() and not (folder / DATABASE).exists():
        strangers = sorted(p.name for p in folder.iterdir() if p.name not in _OF_A_START)
        if strangers:
            more = f" and {len(strangers) - 1} more" if strangers[1:] else ""
            expected = "an empty folder or that of a run"
            found = f"a folder with {strangers[0]!r:.80}{more} and no run"
            raise ConfigError(str(folder), None, "--out", expected, found)
    return folder


# What a run that was killed at once leaves behind.
_OF_A_START = (Path(DATABASE).with_suffix(".lock").name,)


def claim(
    store: SqliteStore, folder: Path, resolved: dict[str, Any], built: Built
) -> Extension | None:
    """Make the folder this campaign's: new, the same, or (the extension) with a larger budget. How
    its model is reached may differ, which is recorded.

    Raises:
        ConfigError: naming the first key that differs, or the machine where times are measured.
    """
    # Times of two machines, or of two compilers, do not mix.
    machine = str(getattr(built.target, "fingerprint", ""))
    return claim_config(store, folder, resolved, about(built), machine, reach=built.reaching)


def about(built: Built) -> dict[str, str]:
    """What a store keeps of a campaign so that its results can be read without it: the baseline,
    the bounds, the library's name and the models that have no price.
    """
    baseline = built.plan.baseline
    entry: dict[str, Any] = {"name": baseline.name, "key": baseline.candidate.key}
    entry["language"] = baseline.candidate.language.value
    entry["candidate"] = shown(baseline.candidate)
    light = speed_of_light(built.target, built.problem, built.plan.state)
    bounds = [asdict(bound) for bound in light]
    kept = {"baseline": json.dumps(entry), "bounds": json.dumps(bounds)}
    if built.plan.library is not None:
        kept["library"] = str(built.plan.library.payload)
    if built.hired is not None and built.hired.unpriced:
        kept["unpriced"] = json.dumps(built.hired.unpriced)
    if notes := notes_of(built.target):
        kept["notes"] = json.dumps(notes)
    return kept


def claim_config(
    store: SqliteStore,
    folder: Path,
    resolved: dict[str, Any],
    known: Mapping[str, str],
    machine: str = "",
    *,
    reach: Collection[str] = (),
) -> Extension | None:
    """`claim` for a resolved campaign; ``known`` is what else is kept of a new one, ``reach`` are
    the keys that may differ.

    Raises:
        ConfigError: as `claim`.
    """
    meta = store.meta()
    text = json.dumps(resolved, sort_keys=True)
    if "config" not in meta:
        version = kernelwright.__version__
        store.set_meta(config=text, machine=machine, version=version, **known)
        return None
    if meta.get("machine", machine) != machine:
        raise _differs(folder, "target (machine and compiler)", meta["machine"], machine)
    if meta["config"] == text:
        return None
    # Compared as JSON, which a tuple and a list, or two NaNs, have in common.
    old, new = json.loads(meta["config"]), json.loads(text)
    differing = _differing(old, new)
    _refuse(folder, old["budget"], new["budget"], [d for d in differing if not _under(d[0], reach)])
    if differing:
        same = json.dumps({**new, "budget": old["budget"]}, sort_keys=True)
        store.set_meta(config=same, **{REACHED: _history(store, meta, differing)})
    return None if new["budget"] == old["budget"] else Extension(new["budget"], {"config": text})


def _refuse(
    folder: Path,
    old_budget: Mapping[str, Any],
    budget: Mapping[str, Any],
    differing: list[Difference],
) -> None:
    """Refuse another campaign, and a smaller budget."""
    for key, was, now in differing:
        raise _differs(folder, key, was, now)
    for key in sorted(old_budget.keys() | budget.keys()):
        was, now = old_budget.get(key), budget.get(key)
        if now is not None and (was is None or now < was):
            raise _differs(folder, f"budget.{key}", was, now)


def _history(store: SqliteStore, meta: Mapping[str, str], differing: list[Difference]) -> str:
    """How the model was reached otherwise so far, and now, each with the calls before it."""
    calls = sum(event.kind == MODEL_CALL for event in store.events())
    new = [{"key": key, "was": was, "now": now, "calls": calls} for key, was, now in differing]
    return json.dumps([*json.loads(meta.get(REACHED, "[]")), *new])


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """The keys, the budget's excepted, whose values differ, with both."""
    before, after = (
        _flat({key: value for key, value in tree.items() if key != "budget"}) for tree in (old, new)
    )
    # The profile decides which other keys of the judge there are.
    keys = sorted(before.keys() | after.keys(), key=lambda key: (key != "judge.profile", key))
    pairs = ((key, before.get(key), after.get(key)) for key in keys)
    return [pair for pair in pairs if repr(pair[1]) != repr(pair[2])]


def _under(key: str, parents: Collection[str]) -> bool:
    """Whether a key is one of some, or below one."""
    return any(key == parent or key.startswith(f"{parent}.") for parent in parents)


def _differs(folder: Path, key: str, was: object, now: object) -> ConfigError:
    """The refusal of another campaign in a run's folder."""
    again = f"as the run in {folder} has it (--fresh starts another)"
    if key.startswith("budget."):
        wanted = "no limit" if was is None else f"at least {was!r}"
        found = f"{now!r}"
    elif key.startswith("hashes."):
        wanted, found = "the file as it was", "a file that was changed, moved or replaced"
    else:
        wanted, found = repr(was), repr(now)
    return ConfigError(str(folder), None, key, f"{wanted}, {again}", found)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def keep_prompt(folder: Path, built: Built) -> None:
    """Keep the templates that a campaign's model is asked by, if one is."""
    agents = built.resolved.get("agents")
    if agents is not None:
        keep_templates(folder, agents["prompt"])


def write_winner(folder: Path, built: Built, store: Store, best: Mapping[str, Any] | None) -> None:
    """Write ``best.json``, and ``best.c`` where the winner has a C form."""
    write(folder / "best.json", json.dumps(best, indent=2) + "\n")
    trial = best_trial(store.trials())
    text = None if trial is None else best_c(built, trial)
    if text is not None:
        write(folder / "best.c", text)


def write(path: Path, text: str) -> None:
    """Replace a file in one step, so that a crash leaves the old one or the new one."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
