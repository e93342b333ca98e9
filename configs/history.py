"""A run as a landscape: every configuration that it judged, with all its samples."""

from __future__ import annotations

from pathlib import Path

from kernelwright.configs.build import parts_of
from kernelwright.configs.entries import entry_of
from kernelwright.configs.load import read_config
from kernelwright.env.landscape.record import Landscape, LandscapeError
from kernelwright.env.types import ExtentRange, Language
from kernelwright.search.store import DATABASE, SqliteStore


def is_run(name: str | Path) -> bool:
    """Whether a name is that of a run's folder or of the file in it."""
    path = Path(name)
    return path.name == DATABASE or (path / DATABASE).is_file()


def landscape_of_run(name: str | Path) -> Landscape:
    """What a run measured, finished or not; what was too noisy to settle is left out.

    Raises:
        StoreError: if there is no run.
        ConfigError: if its campaign cannot be read again.
        LandscapeError: if its candidates have no knobs, or it has no single shape.
    """
    path = Path(name)
    folder = path.parent if path.name == DATABASE else path
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        trials = store.trials()
    problem, _, _ = parts_of(read_config(folder / "config.yaml"))
    ranged = any(isinstance(e, ExtentRange) for w in problem.workloads for _, e in w.extents)
    if len(problem.workloads) != 1 or ranged:
        shapes = ", ".join(w.label for w in problem.workloads)
        raise LandscapeError(f"{folder}: expected a run of one fixed shape, found {shapes}")
    strange = next((t for t in trials if t.candidate.language not in _WITH_KNOBS), None)
    if strange is not None:
        found = strange.candidate.language.value
        raise LandscapeError(f"{folder}: expected a run on knobs, found candidates in {found}")
    judged = [entry_of(t.candidate, [v for _, v in t.verdicts]) for t in trials]
    entries = tuple(entry for entry in judged if entry is not None)
    if not entries:
        raise LandscapeError(f"{folder}: expected a run that judged something, found none")
    machines = (t.measured.measurements[0].machine for t in trials if t.measured is not None)
    return Landscape(
        kernel=problem.name,
        device=next(machines, ""),
        extents=tuple(problem.workloads[0].fixed.items()),
        knob_names=tuple(name for name, _ in entries[0].knobs),
        entries=entries,
        objectives=("time",),
        metadata=problem.traits,
    )


_WITH_KNOBS = (Language.KNOBS, Language.TEMPLATE)
