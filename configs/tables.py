"""Shape → configuration tables out of runs and tuning caches: what ``export --table`` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwright.configs.errors import ConfigError, nearest
from kernelwright.configs.load import read_config
from kernelwright.configs.places import to_write
from kernelwright.configs.spaces import with_template
from kernelwright.configs.winner import WinnerError
from kernelwright.search.store import DATABASE, SqliteStore, is_begun
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.tasks.summary import TASKS
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.rows import FORMATS, Row, row_of, table


def export_table(
    folders: Sequence[str | Path], out: str | Path | None = None, form: str | None = None
) -> str:
    """The table of some runs; also written to ``out`` if that is given.

    Args:
        folders: runs (of one task or many), folders of runs, or tuning caches.
        out: a file; its ending says the format unless ``form`` does.
        form: ``json``, ``csv``, ``md`` or ``py``; JSON unless anything says otherwise.

    Raises:
        StoreError: if a run cannot be read.
        ConfigError: if a folder holds none, its campaign is refused by now, or there is no such
            format.
        WinnerError: if no run found anything valid.
    """
    ending = Path(out).suffix.removeprefix(".") if out is not None else ""
    chosen = form or (ending if ending in FORMATS else "json")
    if chosen not in FORMATS:
        known = ", ".join(FORMATS)
        near = nearest(chosen, FORMATS)
        raise ConfigError("export", None, "--format", f"one of {known}", repr(chosen), near)
    rows = table(rows_of(folders))
    if not rows:
        listed = ", ".join(map(str, folders))
        raise WinnerError(f"{listed}: expected a run with a winner, found nothing valid")
    text = FORMATS[chosen](rows)
    if out is not None:
        to_write(out).write_text(text, encoding="utf-8")
    return text


def rows_of(folders: Sequence[str | Path]) -> list[Row]:
    """The rows of runs, folders of runs (one level) and tuning caches, one a search or task.

    Raises:
        StoreError, ConfigError: as `export_table` does.
    """
    rows: list[Row] = []
    for name in folders:
        folder = Path(name)
        runs = list(_runs(folder))
        found = [row for run in runs for row in _row(run)]
        kept = [] if runs else list(_kept(folder))
        if not runs and not kept:
            expected = "a run, a folder of runs or a tuning cache"
            raise ConfigError(str(folder), None, "", expected, "none")
        rows += found + kept
    return rows


def _runs(folder: Path) -> Iterator[Path]:
    if folder.name == DATABASE:
        folder = folder.parent
    if not (folder / DATABASE).is_file():
        for path in filter(is_begun, sorted(folder.glob(f"*/{DATABASE}"))):
            yield from _runs(path)
        return
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        tasks = json.loads(store.meta().get(TASKS, "[]"))
    yield from [folder / task for task in tasks] or (folder,)


def _row(folder: Path) -> Iterator[Row]:
    if not is_begun(folder / DATABASE):  # a task whose turn has not come
        return
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        meta, summary = store.meta(), summarise(store)
        best, at = best_trial(store.trials()), store.latest()
    if best is None or "config" not in meta:
        return
    campaign = read_config(folder / "config.yaml")
    problem = with_template(campaign, campaign.problem.factory(**campaign.problem.options))
    yield row_of(problem, json.loads(meta["config"]), summary, best, at)


def _kept(folder: Path) -> Iterator[Row]:
    cache = TuningCache(folder)
    for key in cache.known():
        yield from cache.read(key).choices
