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

from kernelwright.agents.asking import answer_of, differing, differing_parts, error_data
from kernelwright.agents.chat import BackendError, ChatRequest, Completion, digest, line_hashes
from kernelwright.agents.questions import in_full
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.trial import MODEL_CALL

ENDING = ".json"
# Of a recording: question and answer are a few megabytes at most.
MOST_BYTES = 64 * 1024 * 1024
# A mismatch in what stands first is the nearer one the less it changes of the question.
_SETTINGS = ("model", "max_tokens", "temperature", "seed", "schema")


class RecordingError(ValueError):
    """What should hold answers does not: what was expected, and what was found."""


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
    names = differing_parts(parts, then)
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
        "completion": answer.plain if isinstance(answer, Completion) else None,
        "error": None if error is None else error_data(error),
    }


def write_recording(folder: Path, data: Mapping[str, Any]) -> None:
    """Keep an exchange in a folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{data['key']}{ENDING}"
    # Two processes may record one answer.
    temporary = place.with_name(f".{place.name}.{os.getpid()}.new")
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
            calls = {(e.ask, e.slot): e.data for e in store.events() if e.kind == MODEL_CALL}
        whole = [_in_full(folder, at, calls) for at in calls]
        return {data["key"]: data for data in whole}
    if not folder.is_dir():
        raise RecordingError(f"expected a run's folder or one of recordings, found {folder}")
    return {place.stem: _recording(place) for place in sorted(folder.glob(f"*{ENDING}"))}


def _in_full(
    folder: Path, at: tuple[int, int], calls: Mapping[tuple[int, int], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The exchange at an ask and a slot of a run, with what it refers to.

    Raises:
        RecordingError: as `_is_sound`.
    """
    where = f"{folder}: call {at[1]} of ask {at[0]}"
    try:
        data = in_full(calls[at], lambda *other: calls[other])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0]:.200}"
        raise RecordingError(f"{where}: expected a recorded answer, found {what}") from None
    # A run keeps hashes of messages short where the key says that they differ.
    _is_sound(where, data, has_whole_hashes="new" not in data)
    return data


def _recording(place: Path) -> Mapping[str, Any]:
    """The exchange in a file.

    Raises:
        RecordingError: if it is none, is too large, or is one of another name.
    """
    try:
        size = place.stat().st_size
        if size > MOST_BYTES:
            raise ValueError(f"{size} bytes, more than {MOST_BYTES}")
        data = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise RecordingError(f"{place}: expected a recording, found {what}") from None
    if not isinstance(data, dict):
        raise RecordingError(f"{place}: expected a recording, found {data!r:.80}")
    _is_sound(f"{place}", data)
    if data["key"] != place.stem:
        expected = f"a recording of the request that the file is named after, found {data['key']}"
        raise RecordingError(f"{place}: expected {expected}")
    return data


def _is_sound(where: str, data: Mapping[str, Any], *, has_whole_hashes: bool = True) -> bool:
    """Whether an exchange is one: true, or an error.

    Raises:
        RecordingError: if a part is missing, cannot be read, or belongs to another request.
    """
    try:
        key, request, lines = data["key"], data["request"], data["lines"]
        if has_whole_hashes and key != digest(request):
            raise ValueError("another key than the request's")
        texts = [text for _, text in data.get("messages", ())]
        if not all(isinstance(text, str) for text in (request["model"], *lines, *texts)):
            raise TypeError("something else in the place of a text")
        answer_of(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {str(error).splitlines()[0]:.200}"
        raise RecordingError(f"{where}: expected a recorded answer, found {what}") from None
    return True
