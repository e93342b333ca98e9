"""The space of C sources: a text to start from, and what of it may be changed.

Editable regions are marked by comment lines of their own, ``// region NAME`` and
``// endregion NAME``; everything outside them stays as it is, byte for byte. There is nothing to
draw from: candidates are written by somebody, and checked here before anything is compiled. That
a text is no worse C for its edits is the compiler's and the judge's to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Violation
from kernelwright.env.spaces.ctext import code_of, may_define
from kernelwright.env.types import Candidate, Language

MAX_BYTES = 64 * 1024
_MARK = re.compile(r"[ \t]*//[ \t]*(region|endregion)[ \t]+(\w+)[ \t]*\r?")
_FACTS = (r"\bfor\b", r"\bwhile\b", r"\bif\b", r"#\s*pragma\b", r"\b_mm\w*_", r"\bvector_size\b")


class SourceError(ValueError):
    """A text whose regions are not what they should be; it says where."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A text by regions: the lines outside with their numbers, markers among them, and what is
    inside each region.
    """

    outside: tuple[tuple[int, str], ...]
    regions: tuple[tuple[str, str], ...]


def marker(line: str) -> tuple[str, str] | None:
    """What a line marks, ``region`` or ``endregion``, and the region's name; None if it is text."""
    mark = _MARK.fullmatch(line)
    return (mark[1], mark[2]) if mark else None


def read_regions(
    text: str, names: Sequence[str]
) -> tuple[list[tuple[int, str]], list[tuple[str, str]]]:
    """A text by the regions of some names: the lines outside with their numbers, markers among
    them, then each region's text; markers of other names are text like any other.

    Raises:
        SourceError: if a region stands twice, or is not closed before another opens.
    """
    outside: list[tuple[int, str]] = []
    inside: dict[str, list[str]] = {}
    current: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        kind, name = marker(line) or ("", "")
        if name not in names:
            kind = ""
        if kind == "region":
            if current is not None:
                raise SourceError(
                    f"line {number}: expected endregion {current}, found region {name}"
                )
            if name in inside:
                raise SourceError(f"line {number}: region {name} stands twice")
            current, inside[name] = name, []
        elif kind == "endregion":
            if current != name:
                expected = "no endregion" if current is None else f"endregion {current}"
                raise SourceError(f"line {number}: expected {expected}, found endregion {name}")
            current = None
        elif current is not None:
            inside[current].append(line + "\n")
            continue
        outside.append((number, line))
    if current is not None:
        raise SourceError(f"region {current}: expected a line // endregion {current}, found none")
    return outside, [(name, "".join(lines)) for name, lines in inside.items()]


def _parse(text: str, names: Sequence[str]) -> _Parsed:
    """A text by all regions of some names.

    Raises:
        SourceError: if they are not in order, or one is missing.
    """
    outside, inside = read_regions(text, names)
    found = {name for name, _ in inside}
    missing = [name for name in names if name not in found]
    if missing:
        raise SourceError(
            f"region {missing[0]}: expected a line // region {missing[0]}, found none"
        )
    return _Parsed(tuple(outside), tuple(inside))


class SourceSpace:
    """C texts that define one function.

    Args:
        text: the start, which is the space's default candidate.
        entry: the function that a text must define.
        regions: the names of the regions that may be changed; without any the whole text may.

    Raises:
        OptionError: if the start itself is not in the space, or a region is named twice.
    """

    language = Language.SOURCE
    can_sample = False

    def __init__(self, text: str, *, entry: str, regions: Sequence[str] = ()) -> None:
        if len(set(regions)) != len(regions):
            raise OptionError("regions", "each name once", ", ".join(regions))
        self.text, self.entry, self.regions = text, entry, tuple(regions)
        try:
            self._start = _parse(text, self.regions)
            self.default = Candidate(Language.SOURCE, text)
        except SourceError as error:
            raise OptionError("regions", "each in the text once", str(error)) from None
        except ValueError as error:
            raise OptionError("file", "C text", str(error)) from None
        broken = self.check(self.default)
        if broken:
            raise OptionError("file", "a start that is in the space", broken[0].reason)

    def check(self, candidate: Candidate) -> tuple[Violation, ...]:
        """Every rule that a candidate breaks; empty if it is in the space."""
        if candidate.language is not Language.SOURCE:
            reason = f"expected a source candidate, found {candidate.language}"
            return (Violation("language", reason),)
        text = _text(candidate)
        size_bytes = len(text.encode())
        if size_bytes > MAX_BYTES:
            reason = f"expected at most {MAX_BYTES} bytes, found {size_bytes}"
            return (Violation("too_long", reason),)
        found = self._edits(text) if self.regions else []
        if not may_define(text, self.entry):
            reason = f"expected a definition of the function {self.entry}, found none"
            found.append(Violation("no_entry", reason))
        return tuple(found)

    def _edits(self, text: str) -> list[Violation]:
        """What a text changed that is not editable."""
        try:
            parsed = _parse(text, self.regions)
        except SourceError as error:
            return [Violation("regions", str(error))]
        pairs = zip(self._start.outside, parsed.outside, strict=False)
        for (_, expected), (number, line) in pairs:
            if line != expected:
                reason = f"line {number}: outside the regions expected {expected!r}, found {line!r}"
                return [Violation("outside_regions", reason)]
        surplus = len(parsed.outside) - len(self._start.outside)
        if surplus > 0:
            number, line = parsed.outside[len(self._start.outside)]
            reason = f"line {number}: outside the regions expected the end, found {line!r}"
            return [Violation("outside_regions", reason)]
        if surplus < 0:
            _, line = self._start.outside[len(parsed.outside)]
            reason = f"at the end: outside the regions expected {line!r}, found nothing"
            return [Violation("outside_regions", reason)]
        return []

    def region(self, candidate: Candidate, name: str) -> str:
        """What a candidate has inside a region.

        Raises:
            ValueError: if there is no such region, or the candidate's are not in order.
        """
        self._known(name)
        return dict(_parse(_text(candidate), self.regions).regions)[name]

    def splice(self, region_texts: Mapping[str, str]) -> Candidate:
        """The start with other texts inside some of its regions; a last line is ended.

        Raises:
            ValueError: if there is no such region.
        """
        texts = dict(self._start.regions)
        for name, text in region_texts.items():
            self._known(name)
            texts[name] = text if not text or text.endswith("\n") else f"{text}\n"
        lines: list[str] = []
        for _, line in self._start.outside:
            mark = _MARK.fullmatch(line)
            lines.append(f"{line}\n")
            if mark and mark[1] == "region" and mark[2] in texts:
                lines.append(texts[mark[2]])
        # The text was cut at line ends: the last piece has none.
        return Candidate(Language.SOURCE, "".join(lines)[:-1])

    def _known(self, name: str) -> None:
        if name not in self.regions:
            known = ", ".join(self.regions) or "none"
            raise ValueError(f"expected one of the regions {known}, found {name!r}")

    def canonical(self, candidate: Candidate) -> Candidate:
        """The candidate itself: another text is another candidate."""
        return candidate

    def sample(self, rng: np.random.Generator) -> Candidate:
        """The start, which is all that can be had without a writer."""
        del rng
        return self.default

    def neighbours(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """None: a text has no step."""
        del candidate
        return ()

    def mutate(
        self, candidate: Candidate, rng: np.random.Generator, steps: int = 1
    ) -> Candidate | None:
        """None: a text is changed by who writes it."""
        del candidate, rng, steps
        return None

    def crossover(
        self, left: Candidate, right: Candidate, rng: np.random.Generator
    ) -> Candidate | None:
        """None: two texts have no mixture."""
        del left, right, rng
        return None

    def features(self, candidate: Candidate) -> NDArray[np.float64]:
        """Simple facts: log2 of length and lines, then how often the text loops, branches, gives
        hints to the compiler and uses vectors.
        """
        text = _text(candidate)
        code = code_of(text)
        counts = [float(len(re.findall(pattern, code))) for pattern in _FACTS]
        sizes = [math.log2(1 + len(code)), math.log2(1 + code.count("\n"))]
        return np.array([*sizes, *counts], dtype=np.float64)


def _text(candidate: Candidate) -> str:
    if candidate.language is not Language.SOURCE or not isinstance(candidate.payload, str):
        raise ValueError(f"expected a source candidate, found {candidate.language}")
    return candidate.payload
