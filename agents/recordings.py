"""Answers to play again: a folder with a file a request, or the record of an earlier run.

A recording holds a whole exchange, under the hash of the request; a run's record holds the answers
and of the questions the hashes of their parts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.agents.asking import differing, error_data
from kernelwright.agents.chat import BackendError, ChatRequest, Completion, line_hashes
from kernelwright.env.records import dumps
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.trial import MODEL_CALL

ENDING = ".json"
# A mismatch in what stands first is the nearer one the less it changes of the question.
_SETTINGS = ("model", "max_tokens", "temperature", "seed", "schema")


class RecordingError(ValueError):
    """What should hold answers does not: what was found in its place."""


class Recordings:
    """Answers by the key of their request, from folders and runs; the first that has one counts.

    Raises:
        RecordingError: if a folder holds neither a run nor recordings.
    """

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._known: dict[str, Mapping[str, Any]] = {}
        for name in folders:
            for key, data in _read(Path(name)).items():
                self._known.setdefault(key, data)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def models(self) -> list[str]:
        """The models that were asked, sorted."""
        return sorted({str(data["request"]["model"]) for data in self._known.values()})

    def find(self, request: ChatRequest) -> Mapping[str, Any] | None:
        """The exchange of this very request."""
        return self._known.get(request.key)

    def keep(self, data: Mapping[str, Any]) -> None:
        """Know one exchange more."""
        self._known[str(data["key"])] = data

    def nearest(self, request: ChatRequest) -> str:
        """The recorded request that differs in the least, and in what, as a sentence."""
        if not self._known:
            return "nothing is recorded"
        parts = request.parts
        data = min(self._known.values(), key=lambda data: (*_distance(parts, data), data["key"]))
        lines = ", ".join(_both(request, data))
        return f"the nearest recorded request, {data['key'][:12]}, differs in {lines}"


def _distance(parts: Mapping[str, Any], data: Mapping[str, Any]) -> tuple[int, int]:
    """How many messages differ, and how many settings."""
    then = data["request"]
    names = [name for name in {**parts, **then} if parts.get(name) != then.get(name)]
    settings = sum(name in _SETTINGS for name in names)
    return len(names) - settings, settings


def _both(request: ChatRequest, data: Mapping[str, Any]) -> list[str]:
    """What differs, with what was recorded where that is known."""
    then = data["request"]
    out = []
    for text in differing(request, data):
        was = then.get(text) if text in _SETTINGS else None
        now = request.parts.get(text)
        out.append(f"{text} (recorded {was!r}, now {now!r})" if text in _SETTINGS else text)
    for i, (_, text) in enumerate(request.messages):
        told = data.get("messages", ())
        if i < len(told) and told[i][1] != text:
            pairs = zip(told[i][1].split("\n"), text.split("\n"), strict=False)
            old = next((old for old, new in pairs if old != new), None)
            if old is not None:
                out.append(f"where it read {old!r:.160}")
            break
    return out


def exchange(request: ChatRequest, answer: Completion | BackendError) -> dict[str, Any]:
    """A recording: the request in full, and what was answered."""
    error = answer if isinstance(answer, BackendError) else None
    return {
        "key": request.key,
        "request": request.parts,
        "messages": [list(message) for message in request.messages],
        "lines": [line_hashes(text) for _, text in request.messages],
        "completion": json.loads(dumps(answer)) if error is None else None,
        "error": None if error is None else error_data(error),
    }


def write_recording(folder: Path, data: Mapping[str, Any]) -> None:
    """Keep an exchange in a folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{data['key']}{ENDING}"
    temporary = place.with_name(f".{place.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(data, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / DATABASE).is_file()


def _read(folder: Path) -> dict[str, Mapping[str, Any]]:
    if is_run(folder):
        with SqliteStore(folder / DATABASE, readonly=True) as store:
            calls = [e.data for e in store.events() if e.kind == MODEL_CALL]
        return {str(data["key"]): data for data in calls}
    if not folder.is_dir():
        raise RecordingError(f"no run and no folder of recordings at {folder}")
    found = {}
    for place in sorted(folder.glob(f"*{ENDING}")):
        try:
            data = json.loads(place.read_text(encoding="utf-8"))
            key = str(data["key"])
            _ = data["request"]["model"], data["completion"], data["error"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise RecordingError(f"{place}, which is no recording ({what})") from None
        found[key] = data
    return found
