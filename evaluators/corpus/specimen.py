"""C kernels in files: what their first line says of them.

A file begins with one comment of ``key: value`` parts::

    /* problem: matmul m=48 n=40 k=33..70; threads: 2; tags: reassociated; shows: what it does */

``problem`` is a row of the catalogue with its options; ``flags`` are compiler flags beyond the
judge's, ``threads`` how many it may start (1), ``tags`` words that an audit counts apart, ``shows``
what is notable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.shapes import Range
from kernelwright.env.types import Candidate, Language, Problem

KEYS = ("problem", "flags", "threads", "tags", "shows")


@dataclass(frozen=True, slots=True)
class Named:
    """A problem of the catalogue by its name and options, which are values."""

    name: str
    options: tuple[tuple[str, int | str | Range], ...] = ()

    def make(self) -> Problem:
        """The problem; equal names give the same object."""
        return _made(self)

    def __str__(self) -> str:
        words = [
            f"{key}={value.low}..{value.high}" if isinstance(value, Range) else f"{key}={value}"
            for key, value in self.options
        ]
        return " ".join([self.name, *words])


@lru_cache(maxsize=256)
def _made(named: Named) -> Problem:
    module, _, function = PROBLEMS[named.name].partition(":")
    problem: Problem = getattr(import_module(module), function)(**dict(named.options))
    return problem


@dataclass(frozen=True, slots=True)
class Specimen:
    """A kernel of the corpus: C text of a problem's function, what it needs to be built and run,
    and what it shows.
    """

    name: str
    problem: Named
    source: str
    shows: str
    flags: tuple[str, ...] = ()
    threads: int = 1
    tags: frozenset[str] = frozenset()

    @property
    def candidate(self) -> Candidate:
        """What a judge is asked about."""
        return Candidate(Language.SOURCE, self.source)


def named(text: str) -> Named:
    """A problem from ``matmul m=48 n=33..70 dtype=float64``.

    Raises:
        ValueError: if there is no such problem, or a word is no option.
    """
    name, *words = text.split()
    if name not in PROBLEMS:
        raise ValueError(f"expected one of {', '.join(PROBLEMS)}, found {name!r}")
    options = []
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise ValueError(f"{name}: expected option=value, found {word!r}")
        options.append((key, _value(value)))
    return Named(name, tuple(options))


def _value(text: str) -> int | str | Range:
    low, dots, high = text.partition("..")
    if dots:
        return Range(low=int(low), high=int(high))
    return int(text) if text.isdecimal() else text


def read(path: Path) -> Specimen:
    """The specimen in a file; its name is the file's.

    Raises:
        ValueError: if the first line is not what the module says, with file and reason.
    """
    text = path.read_text()
    try:
        head = _header(text.partition("\n")[0])
        return Specimen(
            path.stem,
            named(head["problem"]),
            text,
            head["shows"],
            tuple(head.get("flags", "").split()),
            int(head.get("threads", "1")),
            frozenset(head.get("tags", "").replace(",", " ").split()),
        )
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _header(line: str) -> Mapping[str, str]:
    if not (line.startswith("/* ") and line.endswith(" */")):
        raise ValueError(f"expected a first line /* problem: … */, found {line!r:.80}")
    found: dict[str, str] = {}
    for part in line[3:-3].split("; "):
        key, colon, value = part.partition(": ")
        if key not in KEYS or not colon or key in found:
            raise ValueError(f"expected each of {', '.join(KEYS)} once at most, found {part!r:.80}")
        found[key] = value
    missing = [key for key in ("problem", "shows") if not found.get(key)]
    if missing:
        raise ValueError(f"expected {' and '.join(missing)}, found none")
    return found


def read_all(folder: Path) -> tuple[Specimen, ...]:
    """The specimens of a folder's C files, by name.

    Raises:
        ValueError: for the first file that says nothing proper of itself.
    """
    return tuple(read(path) for path in sorted(folder.glob("*.c")))
