"""Write a landscape in any format that can be written, and convert between files."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import os
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from kernelwright.env.landscape import FORMATS, WRITERS
from kernelwright.env.landscape.open import read_source, recognise
from kernelwright.env.landscape.record import Landscape, LandscapeError
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.t1 import SpaceFile, from_t1, to_t1

# The first ending that fits; the last one is every other JSON file's.
_ENDINGS = (
    (".jsonl", "jsonl"),
    (".t4.json", "t4"),
    ("_t4.json", "t4"),
    (".t1.json", "t1"),
    ("_t1.json", "t1"),
    (".autotune.json", "triton"),
    (".best_config", "helion"),
    (".json", "kernel_tuner"),
)
# Fast, because whole spaces are tens of megabytes of digits; a higher level saves a fifth.
_GZIP_LEVEL = 1
# Bytes of a kernel's name in that of a file, which may have 255 with its endings.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did: formats, how many configurations were read, notes of the reader, and
    what the written format does not hold.
    """

    read: str
    written: str
    entries: int
    notes: tuple[str, ...]
    lost: tuple[str, ...]


def format_of(path: Path, given: str | None = None) -> str:
    """The format in which a file is written: the given one, or that of its ending.

    Raises:
        LandscapeError: if there is none such, or it cannot be written.
    """
    if given is not None:
        if given not in WRITERS:
            what = "one that is only read" if given in FORMATS else repr(given)
            near = difflib.get_close_matches(given, WRITERS, 1)
            hint = f"; did you mean {near[0]!r}?" if near and given not in FORMATS else ""
            raise LandscapeError(
                f"format: expected one of {', '.join(WRITERS)}, found {what}{hint}"
            )
        return given
    name = path.name.lower().removesuffix(".gz")
    found = next((form for ending, form in _ENDINGS if name.endswith(ending)), None)
    if found is None:
        listed = ", ".join(ending for ending, _ in _ENDINGS)
        raise LandscapeError(f"{path}: expected a name ending in one of {listed} (and .gz)")
    return found


def render(landscape: Landscape, form: str) -> tuple[str, tuple[str, ...]]:
    """A landscape as the text of a format, and what that does not hold.

    Raises:
        LandscapeError: if the format cannot hold it.
    """
    module, _, name = WRITERS[form].partition(":")
    write: Any = getattr(import_module(module), name)
    try:
        text, lost = write(landscape)
    except LandscapeError:
        raise
    except (ValueError, OverflowError) as error:
        raise LandscapeError(f"{form} cannot hold it: {error}") from None
    return text, lost


def save(landscape: Landscape, path: Path, form: str | None = None) -> tuple[str, ...]:
    """Write a landscape in one step, compressed if the name ends in ``.gz``.

    Returns:
        What the format does not hold.

    Raises:
        LandscapeError: if the format cannot hold it.
    """
    text, lost = render(landscape, format_of(path, form))
    write_text(text, path)
    return lost


def convert(path: Path, out: Path, form: str | None = None) -> Conversion:
    """Read one file and write another.

    Raises:
        LandscapeError: if the first is no landscape, the other is the same file (most formats hold
            less) or its format cannot hold it.
    """
    written = format_of(out, form)
    if out.exists() and out.samefile(path):
        raise LandscapeError(f"{out}: expected another file than the one that is read")
    source = Source(path)
    read = recognise(source)
    if read != "t1":
        landscape = read_source(source)
        lost = save(landscape, out, written)
        return Conversion(read, written, len(landscape.entries), landscape.notes, lost)
    if written != "t1":
        raise source.error(f"T1 has no results, which {written} is made of")
    space: SpaceFile = from_t1(source)
    write_text(to_t1(space)[0], out)
    return Conversion(read, written, 0, tuple(source.notes), ())


def write_text(text: str, path: Path) -> None:
    """Replace a file in one step, so that a crash leaves the old one or the new one; its folder is
    made if there is none.

    Raises:
        LandscapeError: if it is a folder.
    """
    if path.is_dir():
        raise LandscapeError(f"{path}: expected a file to write, found a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, _GZIP_LEVEL, mtime=0)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def best_name(kernel: str, form: str, text: str) -> str:
    """The name that Triton or Helion gives to a file of best configurations. A kernel's name may
    come from anybody's file, so what leads elsewhere in it is written ``_``.
    """
    if form == "triton":
        plain = re.sub(r"[^\w.+-]", "_", kernel).lstrip(".").encode()[:_LONGEST]
        return f"{plain.decode(errors='ignore') or 'kernel'}.autotune.json"
    return f"{hashlib.sha256(text.encode()).hexdigest()}.best_config"
