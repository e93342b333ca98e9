"""The text of a tuning file, and its JSON document, with what a crash of its writer cost.

Tuners are killed while they write. What is complete is read, and `Source.notes` say what is not.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwright.env.landscape.record import LandscapeError

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89abAB]")
_STUMBLES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_RECORD_DEPTH = 2  # of every document that is read: the file, its list, one record in it
MAX_BYTES = 2**30
"""What is read of a file at most, unpacked; the largest published spaces are a tenth of it."""


class Source:
    """A file's text; ``document`` is the JSON value that it holds, parsed when first asked for.
    ``whole`` is false once it is known that the file breaks off.

    Raises:
        LandscapeError: if the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.whole = True
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        self.sha256 = hashlib.sha256(raw).hexdigest()
        try:
            packed = raw[:2] == b"\x1f\x8b"
            data = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(MAX_BYTES + 1) if packed else raw
            if len(data) > MAX_BYTES:
                raise LandscapeError(f"{path}: expected at most {MAX_BYTES:,} bytes, found more")
            self.text = _decoded(data)
        except LandscapeError:
            raise
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise LandscapeError(f"{path}: expected text, found damaged data: {error}") from None
        if not self.text.strip():
            raise LandscapeError(f"{path}: expected a recording, found an empty file")

    @cached_property
    def document(self) -> Any:
        """The whole text as JSON; a text that breaks off is read up to its last whole record."""
        try:
            document = self._parsed(self.text)
        except (ValueError, RecursionError) as error:
            document = self._salvaged()
            if document is None:
                raise self.error(f"expected JSON: {error}") from None
        if _SURROGATE.search(self.text):
            self._check_text(document)
        return document

    def rows(self) -> list[tuple[int, dict[str, Any]]]:
        """The JSON objects of the lines, with the lines' numbers; a last line that breaks off is
        lost.

        Raises:
            LandscapeError: naming the line that is no JSON object.
        """
        lines = [(n, line) for n, line in enumerate(self.text.split("\n"), 1) if line.strip()]
        whole = self._together(lines)
        if whole is not None:
            return whole
        rows: list[tuple[int, dict[str, Any]]] = []
        for number, line in lines:
            try:
                row = self._parsed(line)
                if _SURROGATE.search(line):
                    self._check_text(row)
            except (ValueError, RecursionError) as error:
                if (number, line) == lines[-1] and rows and breaks_off(line):
                    self.notes.append("the last line breaks off: 1 record is lost")
                    break
                found = getattr(error, "msg", None) or str(error)
                raise self.error(f"expected a JSON object: {found}", number) from None
            if not isinstance(row, dict):
                raise self.error(f"expected a JSON object, found {type(row).__name__}", number)
            rows.append((number, row))
        return rows

    def _together(self, lines: list[tuple[int, str]]) -> list[tuple[int, dict[str, Any]]] | None:
        """The rows of lines that are all JSON objects, parsed at once; None if they are not."""
        if _SURROGATE.search(self.text):
            return None
        try:
            values = self._parsed("[" + ",".join([line for _, line in lines]) + "]")
        except (ValueError, RecursionError):
            return None
        if len(values) != len(lines) or not all(isinstance(value, dict) for value in values):
            return None
        return [(number, value) for (number, _), value in zip(lines, values, strict=True)]

    def error(self, message: str, place: int | str | None = None) -> LandscapeError:
        """A refusal that names the file and the place (a line's number, or a path in JSON)."""
        if place is None:
            return LandscapeError(f"{self.path}: {message}")
        colon = ":" if isinstance(place, int) else ": "
        return LandscapeError(f"{self.path}{colon}{place}: {message}")

    @contextmanager
    def read_as(self, form: str) -> Iterator[None]:
        """What else a reader stumbles on, as a value of another kind than the format has there.

        Raises:
            LandscapeError: instead of the error of a look-up or of an operator.
        """
        try:
            yield
        except LandscapeError:
            raise
        except _STUMBLES as error:
            found = f"{type(error).__name__}: {error}"
            raise self.error(f"expected a file of the format {form}, found {found:.200}") from None

    def _parsed(self, text: str) -> Any:
        """JSON, with a note on names that stand twice in an object, of which the last one counts.

        Raises:
            ValueError, RecursionError: as `json.loads` does.
        """
        twice: list[str] = []

        def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            if len(found) < len(pairs):
                names = [name for name, _ in pairs]
                twice.extend(name for name in found if names.count(name) > 1)
            return found

        value = json.loads(text, object_pairs_hook=table)
        if twice:
            count = len(twice)
            names = "1 name stands" if count == 1 else f"{count} names stand"
            listed = ", ".join(f"{name!r:.40}" for name in twice[:3])
            self.notes.append(f"{names} more than once ({listed}): the last value counts")
        return value

    def _check_text(self, value: Any) -> None:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise LandscapeError(f"{self.path}: expected a JSON object: {error}") from None

    def _salvaged(self) -> Any:
        """The document up to its last whole record, or None if the fault is not at the end."""
        stack: list[str] = []
        end, closers = 0, ""
        for match in _TOKEN.finditer(self.text):
            token = match.group()
            if token == '"':
                break
            if token in "{[":
                stack.append("}" if token == "{" else "]")
            elif token in "}]":
                if not stack or stack.pop() != token:
                    return None
                if len(stack) == _RECORD_DEPTH:
                    end, closers = match.end(), "".join(reversed(stack))
            if not stack and token in "}]":
                return None
        if not end:
            return None
        try:
            document = self._parsed(self.text[:end] + closers)
        except (ValueError, RecursionError):
            return None
        rest = self.text[end:].strip(" \t\r\n,")
        lost = "no record is lost" if rest.strip("]} \t\r\n") == "" else "1 record is lost"
        self.notes.append(f"the file breaks off: {lost}")
        self.whole = False
        return document


def _decoded(data: bytes) -> str:
    """UTF-8 as text; where the file ends within a character, that one is a replacement, which no
    JSON ends with.

    Raises:
        UnicodeDecodeError: if it is none elsewhere.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.end < len(data) or "unexpected end" not in error.reason:
            raise
        return data[: error.start].decode("utf-8-sig") + "\ufffd"


def breaks_off(line: str) -> bool:
    """Whether a text that is no JSON is the start of one: it has an open bracket or string."""
    if not line.lstrip().startswith("{"):
        return False
    depth = 0
    for match in _TOKEN.finditer(line):
        token = match.group()
        if token == '"':
            return True
        depth += (token in "{[") - (token in "}]")
    return depth > 0
