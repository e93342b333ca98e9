"""The landscape record: every configuration of a recorded space with its samples, or the reason why
it does not run, and what else is known of it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from enum import StrEnum

from kernelwright.env.landscape.units import SCALES
from kernelwright.env.types import KnobPayload, Scalar

COSTS = ("compile", "verify", "benchmark", "framework", "strategy")
"""What one configuration cost its tuner: seconds of the compiler, of the comparison of results, of
the benchmark, of the tuner's own work, and of its search."""

_NUMBERS = {int, float}


class LandscapeError(ValueError):
    """A recording that cannot be read or written; the message names the file, the place, what was
    expected and what was found.
    """


class NoLandscapeError(LandscapeError):
    """A name that stands for no recording."""

    def __init__(self, expected: str, found: str, nearest: str | None) -> None:
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"expected {expected}, found {found}{hint}")
        self.expected, self.found, self.nearest = expected, found, nearest


class Failure(StrEnum):
    """Why a configuration has no time, in the words of T4."""

    COMPILE = "compile"
    RUNTIME = "runtime"
    CORRECTNESS = "correctness"
    TIMEOUT = "timeout"
    CONSTRAINTS = "constraints"


def printable(text: str) -> str:
    """A file's words as they may be shown: control characters, which a terminal would obey and a
    table would break at, are written out.
    """
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text])


class JsonText(str):
    """The JSON text of a value that is no scalar, as an immutable value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration: its times in ``unit``, or ``error`` with the kind of ``failure``.

    ``max_error`` is the relative error of its result, ``facts`` are the compiler's, ``costs`` what
    it cost to measure (names of `COSTS`, in ``cost_unit``), ``metrics`` the user's own. Knobs are
    sorted by name. A failure without a kind is one of the compiler.
    """

    knobs: KnobPayload
    times: tuple[float, ...] = ()
    error: str | None = None
    max_error: float | None = None
    facts: tuple[tuple[str, float], ...] = ()
    failure: Failure | None = None
    costs: tuple[tuple[str, float], ...] = ()
    timestamp: str | None = None
    metrics: tuple[tuple[str, Scalar], ...] = ()
    unit: str = "us"
    cost_unit: str = "s"

    def __post_init__(self) -> None:
        times = self.times
        if bool(times) == (self.error is not None):
            raise ValueError("expected either samples or an error")
        if times:
            if not (set(map(type, times)) <= _NUMBERS and min(times) > 0 and sum(times) < 1e290):
                _check_times(times, self.unit)
            if self.failure is not None:
                raise ValueError(f"failure {self.failure.value!r} of a configuration that ran")
        elif self.failure is None:
            object.__setattr__(self, "failure", Failure.COMPILE)
        for name, fact in (*self.facts, *self.costs):
            if not math.isfinite(fact):
                raise ValueError(f"{name}: expected a finite number, found {fact!r}")
        if self.max_error is not None and not 0 <= self.max_error < math.inf:
            raise ValueError(f"expected a finite relative error >= 0, found {self.max_error!r}")

    @property
    def samples_ns(self) -> tuple[float, ...]:
        """The times in nanoseconds."""
        scale = SCALES[self.unit]
        return tuple([scale * time for time in self.times])

    @property
    def true_ns(self) -> float:
        """The median of the samples, NaN for a configuration that does not run. For scoring
        only.
        """
        return statistics.median(self.samples_ns) if self.times else math.nan

    @property
    def costs_s(self) -> tuple[tuple[str, float], ...]:
        """The costs in seconds, named ``compile_s`` and so on."""
        scale = SCALES[self.cost_unit] / SCALES["s"]
        return tuple((f"{name}_s", scale * cost) for name, cost in self.costs)


def _check_times(times: tuple[float, ...], unit: str) -> None:
    for value in times:
        if type(value) not in _NUMBERS:
            raise TypeError(f"expected times, found {value!r:.80}")
        if not (value > 0 and math.isfinite(SCALES[unit] * float(value))):
            raise ValueError(f"expected positive finite times, found {value!r:.80}")


@dataclass(frozen=True, slots=True)
class Landscape:
    """A recorded space: its knobs, its entries (one a configuration), and what is known of the
    recording.

    ``extents`` are the problem's, ``library_ns`` the samples of a vendor library on the same
    operands, ``device`` the GPU's name and ``default`` the file's default configuration. ``values``
    are the full lists of the knobs' values in the order of ``knob_names`` (those that occur, in
    ascending order, where a file does not say), ``objectives`` what its tuner looked for and
    ``metadata`` all else that it says. ``format`` and ``notes`` say how it was read and what was
    lost; they, and the hash of the file, are not part of its value.
    """

    kernel: str
    device: str
    extents: tuple[tuple[str, int], ...]
    knob_names: tuple[str, ...]
    entries: tuple[Entry, ...]
    library: str | None = None
    library_ns: tuple[float, ...] = ()
    default: KnobPayload | None = None
    values: tuple[tuple[Scalar, ...], ...] = ()
    objectives: tuple[str, ...] = ()
    metadata: tuple[tuple[str, Scalar], ...] = ()
    sha256: str = field(default="", compare=False)
    format: str = field(default="", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    by_knobs: dict[KnobPayload, Entry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError("expected at least one configuration, found none")
        self._check_words()
        for value in self.library_ns:
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"library: expected positive finite times, found {value!r}")
        names, table = tuple(sorted(self.knob_names)), {}
        for entry in self.entries:
            if tuple([name for name, _ in entry.knobs]) != names:
                raise ValueError(f"expected knobs {list(names)}, found {entry.knobs}")
            table[entry.knobs] = entry
        if len(table) < len(self.entries):
            self._refuse_repetition()
        if self.default is not None and self.default not in table:
            raise ValueError(f"default {dict(self.default)} is not among the configurations")
        if self.values:
            self._check_values()
        else:
            object.__setattr__(self, "values", tuple(map(self._occurring, self.knob_names)))
        object.__setattr__(self, "by_knobs", table)

    def _check_words(self) -> None:
        metrics = {name for entry in self.entries for name, _ in entry.metrics}
        errors = {type(entry.error) for entry in self.entries}
        words = (*self.knob_names, *metrics, *((self.library,) if self.library is not None else ()))
        for word in words:
            if not isinstance(word, str):
                raise TypeError(f"expected a name, found {word!r:.80}")
        if not errors <= {str, type(None)}:
            raise TypeError(f"expected text as an error, found {errors - {str, type(None)}}")

    def _refuse_repetition(self) -> None:
        seen = set()
        for entry in self.entries:
            if entry.knobs in seen:
                raise ValueError(f"configuration {dict(entry.knobs)} stands twice")
            seen.add(entry.knobs)

    def _check_values(self) -> None:
        if len(self.values) != len(self.knob_names):
            found = f"{len(self.values)} lists of values for {len(self.knob_names)} knobs"
            raise ValueError(f"expected the values of every knob, found {found}")
        known = dict(zip(self.knob_names, map(frozenset, self.values), strict=True))
        for place, name in enumerate(sorted(self.knob_names)):
            strange = {entry.knobs[place][1] for entry in self.entries} - known[name]
            if strange:
                listed = ", ".join(map(str, self.knob_values(name)))
                raise ValueError(f"{name}: expected one of {listed}, found {min(strange)!r}")

    def _occurring(self, name: str) -> tuple[Scalar, ...]:
        place = sorted(self.knob_names).index(name)
        return ascending({entry.knobs[place][1] for entry in self.entries})

    def knob_values(self, name: str) -> tuple[Scalar, ...]:
        """The values of a knob, in the file's order."""
        return self.values[self.knob_names.index(name)]

    @property
    def failed(self) -> int:
        """How many configurations have no time."""
        return sum(not entry.times for entry in self.entries)

    @property
    def best(self) -> Entry:
        """The fastest configuration by its median.

        Raises:
            ValueError: if none ran.
        """
        return self._ran()[0]

    @property
    def median_entry(self) -> Entry:
        """The configuration of median time among those that ran (the lower one of two).

        Raises:
            ValueError: if none ran.
        """
        ran = self._ran()
        return ran[(len(ran) - 1) // 2]

    def has_times_of(self, other: Landscape) -> bool:
        """Whether both have the same configurations with the same median times, in whatever unit
        and format.
        """
        times, theirs = (
            {entry.knobs: entry.true_ns for entry in each.entries if entry.times}
            for each in (self, other)
        )
        return times.keys() == theirs.keys() and all(
            math.isclose(time, theirs[knobs]) for knobs, time in times.items()
        )

    def _ran(self) -> list[Entry]:
        ran = sorted((e for e in self.entries if e.times), key=lambda e: (e.true_ns, _order(e)))
        if not ran:
            raise ValueError("no configuration of this landscape ran")
        return ran


def _order(entry: Entry) -> tuple[tuple[str, str, Scalar], ...]:
    return tuple((name, str(type(value)), value) for name, value in entry.knobs)


def ascending(values: set[Scalar]) -> tuple[Scalar, ...]:
    """Distinct values in ascending order, those of one type side by side."""
    return tuple(sorted(values, key=lambda value: (str(type(value)), value)))
