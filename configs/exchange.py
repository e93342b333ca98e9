"""Tuning files of others: conversions, a run's winner in their shapes, and what a file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kernelwright.configs.entries import entry_of
from kernelwright.configs.history import is_run, landscape_of_run
from kernelwright.configs.places import to_write
from kernelwright.configs.winner import Winner, WinnerError, winner
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import Landscape, LandscapeError, printable
from kernelwright.env.landscape.save import (
    Conversion,
    best_name,
    format_of,
    render,
    save,
    write_text,
)
from kernelwright.env.landscape.save import convert as convert_file
from kernelwright.env.types import Language

BEST_FORMATS = ("triton", "helion")


def convert(
    name: str, out: str | Path, form: str | None = None, *, force: bool = False
) -> dict[str, Any]:
    """Read one landscape, or what a run measured, and write a file of it: the object that
    ``convert --json`` prints. A file that is there already is replaced only by ``force``.

    Raises:
        LandscapeError: if the first is none, the other's format cannot hold it, or there is a file
            that says anything else.
        StoreError: if it is a run that cannot be read.
        ConfigError: so too, or if the other is no file that can be written.
    """
    path = to_write(out)
    if path.exists() and not force:
        with TemporaryDirectory() as folder:
            other = Path(folder) / path.name
            done = _converted(name, other, format_of(path, form))
            if other.read_bytes() != path.read_bytes():
                expected = "a name that is free, or a file that says the same"
                raise LandscapeError(f"{out}: expected {expected}, found another (--force)")
    else:
        done = _converted(name, path, form)
    return {**asdict(done), "out": str(out)}


def _converted(name: str, path: Path, form: str | None) -> Conversion:
    if not is_run(name):
        return convert_file(locate(name), path, form)
    landscape, written = landscape_of_run(name), format_of(path, form)
    lost = save(landscape, path, written)
    return Conversion("a run", written, len(landscape.entries), landscape.notes, lost)


def describe(name: str) -> dict[str, Any]:
    """A row of ``list landscapes``: what was read of a shipped name or a file.

    Raises:
        LandscapeError: if it is no landscape.
    """
    found = open_landscape(locate(name))
    failed = f" ({found.failed:,} failed)" if found.failed else ""
    kernel, device = found.kernel or "a kernel not named", found.device or "a device not named"
    doc = f"{kernel} on {device}, {len(found.entries):,} configurations{failed}"
    ran = found.failed < len(found.entries)
    return {
        "name": name,
        "doc": printable("; ".join([doc, *found.notes])),
        "format": found.format,
        "kernel": found.kernel,
        "device": found.device,
        "extents": dict(found.extents),
        "knobs": {knob: list(found.knob_values(knob)) for knob in found.knob_names},
        "configurations": len(found.entries),
        "failed": found.failed,
        "best_ns": found.best.true_ns if ran else None,
        "notes": list(found.notes),
    }


def export_best(folder: str | Path, form: str, out: str | Path | None = None) -> str:
    """The winner of a run as a tuning cache of Triton or Helion; also written to ``out`` if that is
    given, under the name that they would give it where that is a folder.

    Raises:
        StoreError, ConfigError: as `winner` does.
        WinnerError: if there is no winner, or it has no knobs.
    """
    best = _landscape(winner(folder))
    text, _ = render(best, form)
    if out is not None:
        path = Path(out)
        path = path / best_name(best.kernel, form, text) if path.is_dir() else to_write(path)
        write_text(text, path)
    return text


def _landscape(best: Winner) -> Landscape:
    """The winner as a landscape of one configuration."""
    candidate, measured = best.trial.candidate, best.trial.measured
    if candidate.language is not Language.KNOBS and candidate.language is not Language.TEMPLATE:
        raise WinnerError(f"expected a winner with knobs, found one in {candidate.language.value}")
    assert measured is not None
    entry = entry_of(candidate, [measured])
    assert entry is not None
    order = {knob.name: place for place, knob in enumerate(best.problem.knobs)}
    names = sorted((name for name, _ in entry.knobs), key=lambda name: order.get(name, len(order)))
    return Landscape(
        kernel=best.problem.name,
        device=measured.measurements[0].machine,
        extents=tuple(best.problem.workloads[0].fixed.items()),
        knob_names=tuple(names),
        entries=(entry,),
    )
