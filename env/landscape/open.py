"""Find, recognise and open a landscape, by shipped name or by path."""

from __future__ import annotations

import difflib
import gc
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from kernelwright.env.landscape import ENDINGS, FORMATS
from kernelwright.env.landscape.record import Landscape, LandscapeError, NoLandscapeError
from kernelwright.env.landscape.source import Source

DATA_DIR = Path(__file__).parent / "data"

# Keys that no other format's document has together.
_DOCUMENTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("kernel_tuner", frozenset({"tune_params_keys", "tune_params"})),
    ("t1", frozenset({"ConfigurationSpace"})),
    ("ktt", frozenset({"Results", "Metadata"})),
    ("triton", frozenset({"configs_timings"})),
    ("t4", frozenset({"results"})),
)
_TUNING_LOG = frozenset({"config", "status", "perf_ms"})
_TABLE = (
    "a tuning log of Helion (columns config, status and perf_ms among others), the one CSV that is "
    "read, or JSON lines, which are easy to write (an example: docs/landscapes.md, 'Written by "
    "hand')"
)


def _ending(name: str) -> str | None:
    return next((e for e in sorted(ENDINGS, key=len, reverse=True) if name.endswith(e)), None)


def shipped_landscapes() -> dict[str, Path]:
    """The shipped recordings: ``h200_gemm_4096x4096x4096`` is
    ``data/h200_gemm/gemm_4096x4096x4096.jsonl.gz``.
    """
    out = {}
    for path in sorted(DATA_DIR.glob("*/*")):
        ending = _ending(path.name)
        if ending is not None:
            device = path.parent.name.split("_")[0]
            out[f"{device}_{path.name.removesuffix(ending)}"] = path
    return out


def locate(name: str, folder: Path | None = None) -> Path:
    """The file of a landscape: a shipped name, or a path relative to ``folder``.

    Raises:
        NoLandscapeError: if there is no such recording; it lists the shipped names and the nearest.
        LandscapeError: if no format has the file's ending.
    """
    shipped = shipped_landscapes()
    if name in shipped:
        return shipped[name]
    path = (folder or Path()) / name
    if not path.is_file():
        near = difflib.get_close_matches(name, shipped, 1)
        expected = f"a file or one of {', '.join(shipped)}"
        raise NoLandscapeError(expected, repr(name), near[0] if near else None)
    if _ending(path.name) is None:
        raise LandscapeError(f"{path}: expected a name ending in {' or '.join(ENDINGS)}")
    return path.resolve()


def open_landscape(path: Path) -> Landscape:
    """Read a located landscape, whatever its format; the same file is parsed once.

    Raises:
        LandscapeError: naming the file and the place, if it is no landscape.
    """
    stat = path.stat()
    return _open(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _open(path: Path, _mtime_ns: int, _size: int) -> Landscape:
    return read_landscape(path)


def read_landscape(path: Path) -> Landscape:
    """`open_landscape`, afresh."""
    return read_source(Source(path))


def read_source(source: Source) -> Landscape:
    """The landscape in a file that is open already."""
    with _uncollected():
        name = recognise(source)
        if name == "t1":
            raise source.error("expected results, found the description of a search space (T1)")
        with source.read_as(name):
            landscape: Landscape = _reader(name)(source)
    return landscape


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look through a million values that all stay."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _reader(name: str) -> Any:
    module, _, function = FORMATS[name].partition(":")
    return getattr(import_module(module), function)


def recognise(source: Source) -> str:
    """The name of a file's format, by its content.

    Raises:
        LandscapeError: if it is none of `FORMATS`.
    """
    head, _, rest = source.text.lstrip().partition("\n")
    if not head.startswith(("{", "[")):
        if set(head.strip().split(",")) >= _TUNING_LOG:
            return "helion"
        if "," in head:
            raise source.error(
                f"expected {_TABLE}, found a table with the columns {head.strip():.60}"
            )
        raise source.error(f"expected one of the formats {', '.join(FORMATS)}, found {head!r:.60}")
    try:
        first = json.loads(head)
    except (ValueError, RecursionError):
        first = None
    lines = first is not None and (bool(rest.strip()) or ".jsonl" in source.path.name)
    if first is None and ".jsonl" in source.path.name:
        return "jsonl"
    whole = first if first is not None else source.document
    keys = _keys(whole)
    found = next((name for name, wanted in _DOCUMENTS if wanted <= keys), None)
    if found is not None and not (lines and rest.strip()):
        return found
    if {"i", "r"} <= keys or {"input", "result"} <= keys:
        return "autotvm"
    if lines:
        return "jsonl"
    raise source.error(f"expected one of the formats {', '.join(FORMATS)}, found {_found(whole)}")


def _found(value: Any) -> str:
    """What a JSON value is that is no landscape."""
    if isinstance(value, dict) and value:
        return f"an object with the keys {', '.join(sorted(value)):.200}"
    kinds = {dict: "an object without keys", list: "a list", type(None): "null"}
    return kinds.get(type(value), f"{value!r:.60}")


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()
