"""Open a landscape by shipped name or by path."""

from __future__ import annotations

import difflib
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from kernelwright.env.landscape import FORMATS
from kernelwright.env.landscape.record import Landscape, LandscapeError, NoLandscapeError

DATA_DIR = Path(__file__).parent / "data"


def _ending(name: str) -> str | None:
    return next((e for e in sorted(FORMATS, key=len, reverse=True) if name.endswith(e)), None)


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
        LandscapeError: if no reader knows the file's ending.
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
        raise LandscapeError(f"{path}: expected a name ending in {' or '.join(FORMATS)}")
    return path.resolve()


def open_landscape(path: Path) -> Landscape:
    """Read a located landscape; the same file is parsed once."""
    stat = path.stat()
    return _open(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _open(path: Path, _mtime_ns: int, _size: int) -> Landscape:
    ending = _ending(path.name)
    if ending is None:
        raise LandscapeError(f"{path}: expected a name ending in {' or '.join(FORMATS)}")
    module, _, name = FORMATS[ending].partition(":")
    landscape: Landscape = getattr(import_module(module), name)(path)
    return landscape
