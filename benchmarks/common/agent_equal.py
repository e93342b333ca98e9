"""Rows of the table of agents: one record for any number of workers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agent_runs import MOCKS, SOURCE, SPACES, Config, agents, campaign, share, tables
from table import Row

from kernelwright.configs import api
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.search.drivers import DRIVERS
from kernelwright.search.trial import MODEL_CALL

WORKERS = (1, 2, 8)
SCHEDULES = {
    "problem": {"name": "matmul", "m": 64, "n": 64, "k": 64},
    "space": {"kind": "schedule"},
    "target": {"name": "cpu-model"},
}
TRACES_ONLY, LISTS_ONLY = ("beam", "mcts"), ("grid", "coordinate_descent")
Tables = list[list[tuple[object, ...]]]


def equal() -> Iterator[Row]:
    """Each campaign at 1, 2 and 8 workers."""
    for name, space in SPACES.items():
        runs = [
            (f"{agent} {seed} {backend}", campaign(agent, space, backend, seed, batch=8))
            for agent in agents()
            for backend in MOCKS
            for seed in (1, 2)
        ]
        yield same(f"agents on {name}: one record at 1, 2 and 8 workers", runs, at_any_workers)
    replays = [
        (f"{agent} on {name}", campaign(agent, space, MOCKS[0], 3, batch=8))
        for name, space in SPACES.items()
        for agent in agents()
    ]
    title = "backend replay: the record that it plays, at 1, 2 and 8 workers"
    yield same(title, replays, as_replayed)
    with tempfile.TemporaryDirectory() as folder:
        runs = list(classical(Path(folder)))
        yield same("other drivers: one record at 1, 2 and 8 workers", runs, at_any_workers)


def same(
    title: str, runs: Sequence[tuple[str, Config]], is_same: Callable[[Config, Path], bool]
) -> Row:
    """The row of a number of campaigns."""
    bad = []
    for name, config in runs:
        with tempfile.TemporaryDirectory() as folder:
            if not is_same(config, Path(folder)):
                bad.append(name)
    return share(title, len(runs) - len(bad), len(runs), "equal", bad)


def record(config: Config, out: Path, workers: int) -> Tables:
    """The record that a campaign makes."""
    api.run(config, out, workers=workers)
    return tables(out)


def at_any_workers(config: Config, folder: Path) -> bool:
    """Whether the record is the same, and holds trials, and calls if a model was asked."""
    first, *others = (record(config, folder / str(n), n) for n in WORKERS)
    kinds = {row[1] for row in first[2]}
    is_whole = bool(first[0]) and ("agents" not in config or MODEL_CALL in kinds)
    return is_whole and all(other == first for other in others)


def as_replayed(config: Config, folder: Path) -> bool:
    """Whether a campaign that is answered by a run has that run's record."""
    first = record(config, folder / "first", 1)
    return all(
        record(played(config, folder / "first"), folder / str(n), n) == first for n in WORKERS
    )


def played(config: Config, folder: Path) -> Config:
    """The campaign answered by a run of it."""
    return config | {"agents": {"backend": {"name": "replay", "from": str(folder)}}}


def classical(folder: Path) -> Iterator[tuple[str, Config]]:
    """Campaigns of the drivers that ask no model, in each kind of space that they search."""
    base = {"budget": {"trials": 24}, "batch": 8}
    for driver in (d for d in DRIVERS if d != "listed"):
        spaces = [] if driver in TRACES_ONLY else [SPACES["knobs"]]
        spaces += [] if driver in LISTS_ONLY else [SCHEDULES]
        for space in spaces:
            for seed in (1, 2):
                name = f"{driver} {space['problem']['name']} {seed}"
                keys = {**base, "driver": {"name": driver}, "seed": seed}
                yield name, {"name": driver, **space, **keys}
    files = []
    for number in range(24):
        files.append(str(folder / f"{number}.c"))
        Path(files[-1]).write_text(f"// {number}\n{row_sum().plain_c}")
    listed = {"name": "listed", "files": files, "shuffle": True}
    for seed in (1, 2):
        yield f"listed {seed}", {"name": "listed", **SOURCE, "driver": listed, **base, "seed": seed}
