"""The tuning cache on disk: a folder with one file a key, ``PROBLEM/DIGEST.jsonl``, append-only.

The first line holds the key in full (where it was damaged, the next writer says it again). Writers
take a lock on the file and write their lines in one piece; a line that was cut off by a crash is
closed by the next writer, skipped by readers and reported. What a reader saw is a prefix of the
file, named by its length and hash, so a campaign that is resumed sees the same records whatever was
added since.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.search.tuning.key import TuningKey
from kernelwright.search.tuning.record import CHOICE, KEY, TRIAL, Record, content, opened, sealed

FORMAT = 1
_EMPTY = hashlib.sha256(b"").hexdigest()
# How a line with a key begins, and no other.
_KEY_LINE = f'{{"kind":"{KEY}"'.encode()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a reader saw of a file: its first ``size`` bytes, whose hash is ``sha256``.

    ``trials`` and ``choices`` are what was recorded, oldest first; ``faults`` say for each line
    that was refused where it stands and why.
    """

    path: Path
    size: int = 0
    sha256: str = _EMPTY
    trials: tuple[Record, ...] = ()
    choices: tuple[dict[str, Any], ...] = ()
    faults: tuple[str, ...] = ()


class TuningCache:
    """A folder of judged configurations; it may be shared by several users and machines.

    Args:
        folder: where it lies; it is made when something is first written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: TuningKey) -> Path:
        """The file of a key."""
        return self.folder / re.sub(r"[^\w.@-]", "_", key.problem) / f"{key.digest}.jsonl"

    def read(self, key: TuningKey, size: int | None = None) -> Snapshot:
        """What is recorded for a key, in the whole file or its first ``size`` bytes; nothing where
        there is no such file. Nothing is made or changed.

        Raises:
            OSError: if there is a file that cannot be read.
        """
        path = self.path(key)
        try:
            raw = _bytes(path)[:size]
        except FileNotFoundError:
            return Snapshot(path)
        return _snapshot(path, raw, key)

    def append(self, key: TuningKey, lines: Sequence[Mapping[str, Any]]) -> int:
        """Add lines (`Record.to_line`, `choice_line`) that the file does not say already; how many
        those were.

        Raises:
            OSError: if the folder cannot be written.
        """
        path = self.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            raw = file.read()
            known, _ = _lines(path, raw, key)
            said = {content(data) for data in known}
            fresh = []
            if not any(data.get("kind") == KEY for data in known):
                fresh.append(
                    sealed({"kind": KEY, "format": FORMAT, "of": key.to_json()}, key.digest)
                )
            added = 0
            for line in lines:
                text = sealed(line, key.digest)
                meaning = content(opened(text, key.digest))
                if meaning not in said:
                    said.add(meaning)
                    fresh.append(text)
                    added += 1
            # Without its key a file is not found by those who look for others' records.
            if not (added or (raw and fresh)):
                return 0
            # A line that a crash has cut off ends here, and is skipped as damaged.
            start = "\n" if raw and not raw.endswith(b"\n") else ""
            try:
                _write_whole(file.fileno(), (start + "\n".join(fresh) + "\n").encode())
                os.fsync(file.fileno())
            except OSError:
                # All or nothing: a disk that is full is not filled further with a part of it.
                os.ftruncate(file.fileno(), len(raw))
                raise
        return added

    def known(self, problem: str | None = None) -> Iterator[TuningKey]:
        """The keys that something is recorded for, in the order of their files; of one problem
        (``name@version``) if it is given. A file without any readable key is passed over.
        """
        for path in sorted(self.folder.glob("*/*.jsonl")):
            with suppress(OSError, ValueError):
                key = _key_in(_bytes(path), path.stem)
                if key is not None and problem in (None, key.problem):
                    yield key

    @contextmanager
    def tuning(self, key: TuningKey) -> Iterator[None]:
        """Hold the right to tune for a key; other threads and processes that ask for it wait."""
        path = self.path(key).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def choice_line(row: Mapping[str, Any], run: str, at: float) -> dict[str, Any]:
    """A line that says what a search ended with; ``row`` is a row of the table (`rows`)."""
    return {"kind": CHOICE, "row": dict(row), "run": run, "at": at}


def _bytes(path: Path) -> bytes:
    """A file's content, while nobody writes to it."""
    with path.open("rb") as file:
        # A read-only share may know no locks, and has no writers here either.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_SH)
        return file.read()


def _key_in(raw: bytes, digest: str) -> TuningKey | None:
    """The key that a file holds: on its first line, unless that was damaged; then whoever wrote
    next has said it again.
    """
    for line in raw.split(b"\n"):
        if not line.startswith(_KEY_LINE):
            continue
        with suppress(ValueError):
            data = opened(line.decode(errors="replace"), digest)
            key = TuningKey.from_json(data.get("of") or {})
            if key.digest == digest:
                return key
    return None


def _snapshot(path: Path, raw: bytes, key: TuningKey) -> Snapshot:
    known, faults = _lines(path, raw, key)
    trials, choices = [], []
    for data in known:
        if data.get("kind") == TRIAL:
            try:
                trials.append(Record.from_line(data))
            except ValueError as error:
                faults.append(f"{path}: {error}")
        elif data.get("kind") == CHOICE and isinstance(data.get("row"), dict):
            choices.append(data["row"])
    digest = hashlib.sha256(raw).hexdigest()
    return Snapshot(path, len(raw), digest, tuple(trials), tuple(choices), tuple(faults))


def _lines(path: Path, raw: bytes, key: TuningKey) -> tuple[list[dict[str, Any]], list[str]]:
    """The data of the whole lines of a key's file, and what is wrong with the others."""
    known, faults = [], []
    digest, plain = key.digest, key.to_json()
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line:
            continue
        try:
            data = opened(line.decode(errors="replace"), digest)
            if data.get("kind") == KEY and data.get("of") != plain:
                raise ValueError("expected the key of this file, found another one")
        except ValueError as error:
            faults.append(f"{path}:{number}: {error}")
        else:
            known.append(data)
    return known, faults


def _write_whole(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
