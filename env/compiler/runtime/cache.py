"""A content-addressed build cache: the key is everything a build depends on, and what is read is
verified.

An entry is a folder named by the hash of (source, flags, compiler, machine) with the library, its
own hash, the hashes of the other files that it was made from, and the compiler's log. It appears in
one rename, so a reader sees a whole entry or none; an entry whose library does not match its hash,
or that was made from what is no longer there, is built again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernelwright.env.compiler.runtime.folders import user_folder
from kernelwright.env.compiler.runtime.sources import made_from, unchanged
from kernelwright.env.compiler.runtime.toolchain import BuildError, Toolchain


def cache_folder() -> Path:
    """Where this user's builds are kept.

    Raises:
        OSError: if there is no such place that can be written.
    """
    return user_folder("builds")


@dataclass(frozen=True, slots=True)
class Build:
    """A library on disk, the log of its compiler, and whether it was there before."""

    library: Path
    log: str
    cached: bool


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is built: a program or a library, and whether from a text that nobody vouches for."""

    executable: bool
    confined: bool


class BuildCache:
    """Builds under a folder.

    Args:
        folder: where entries live; it is made when the first one is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(
        self,
        source: str,
        toolchain: Toolchain,
        flags: Sequence[str],
        *,
        executable: bool = False,
        confined: bool = False,
    ) -> Build:
        """The library of a source text, or the program, compiled only if it is not there;
        ``confined`` if nobody vouches for the text (`Toolchain.compile`).

        Raises:
            BuildError: if the compiler refuses.
            OSError: if the folder cannot be written.
        """
        kind = _Kind(executable, confined)
        entry = self.folder / _key(source, toolchain, flags, kind)
        log = _verified(entry)
        if log is not None:
            return Build(entry / "kernel.so", log, cached=True)
        try:
            log = self._make(entry, source, toolchain, flags, kind)
        except FileNotFoundError:
            # Somebody tidied up under the compiler's feet, which is no reason to blame the text.
            log = self._make(entry, source, toolchain, flags, kind)
        return Build(entry / "kernel.so", log, cached=False)

    def _make(
        self,
        entry: Path,
        source: str,
        toolchain: Toolchain,
        flags: Sequence[str],
        kind: _Kind,
    ) -> str:
        """Compile an entry and put it in its place; the compiler's log.

        Raises:
            BuildError: if the compiler refuses.
            FileNotFoundError: if the folder was removed meanwhile.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as scratch:
            fresh, rule = Path(scratch) / "entry", Path(scratch) / "kernel.d"
            fresh.mkdir()
            started_ns = fresh.stat().st_ctime_ns
            library = fresh / "kernel.so"
            try:
                log = toolchain.compile(
                    source,
                    str(library),
                    flags,
                    executable=kind.executable,
                    rule=str(rule),
                    confined=kind.confined,
                )
            except BuildError:
                fresh.stat()  # gone, and so was what the compiler should have written
                raise
            (fresh / "kernel.c").write_text(source)
            about = {
                "sha256": _sha256(library),
                "log": log,
                "flags": list(flags),
                "made_from": made_from(source, rule, toolchain, flags, started_ns),
            }
            (fresh / "entry.json").write_text(json.dumps(about))
            _publish(fresh, entry)
        return log


def _publish(fresh: Path, entry: Path) -> None:
    """Put a new entry in its place; a whole entry that another process published meanwhile stays.

    One process publishes at a time, and what is in the way is moved aside before it is removed, so
    nobody sees half an entry or loses a whole one.
    """
    with (entry.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _verified(entry) is not None:
            return
        if entry.is_symlink() or entry.exists():
            aside = fresh.parent / "damaged"
            entry.rename(aside)
        fresh.rename(entry)


def _verified(entry: Path) -> str | None:
    """The log of a whole entry whose library is what was built, and what would be built again,
    else None.
    """
    try:
        about = json.loads((entry / "entry.json").read_text())
        whole = _sha256(entry / "kernel.so") == about["sha256"] and unchanged(about["made_from"])
        return about["log"] if whole else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _key(source: str, toolchain: Toolchain, flags: Sequence[str], kind: _Kind) -> str:
    words = toolchain.words(flags, executable=kind.executable)
    parts = [source, toolchain.command, toolchain.version, words, _machine(), kind.confined]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@cache
def _machine() -> str:
    """What ``-march=native`` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "flags", "Features")
    facts = sorted({line for line in lines if line.startswith(wanted)})
    return "\n".join([platform.machine(), *facts])


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
