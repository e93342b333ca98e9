"""The landscape record: every configuration of a recorded space with its samples, or the reason why
it does not run.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from kernelwright.env.types import KnobPayload, Scalar


class LandscapeError(ValueError):
    """A recording that cannot be read; the message names the file, the line, what was expected and
    what was found.
    """


class NoLandscapeError(LandscapeError):
    """A name that stands for no recording."""

    def __init__(self, expected: str, found: str, nearest: str | None) -> None:
        hint = f"; did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"expected {expected}, found {found}{hint}")
        self.expected, self.found, self.nearest = expected, found, nearest


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration: times in ns, or ``error``; the relative error of its result and the
    compiler's facts, where recorded.
    """

    knobs: KnobPayload
    samples_ns: tuple[float, ...] = ()
    error: str | None = None
    max_error: float | None = None
    facts: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if bool(self.samples_ns) == (self.error is not None):
            raise ValueError("expected either samples or an error")
        for value in self.samples_ns:
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"expected positive finite times, found {value!r}")
        for name, fact in self.facts:
            if not math.isfinite(fact):
                raise ValueError(f"{name}: expected a finite number, found {fact!r}")
        if self.max_error is not None and not 0 <= self.max_error < math.inf:
            raise ValueError(f"expected a finite relative error >= 0, found {self.max_error!r}")

    @property
    def true_ns(self) -> float:
        """The median of the samples, NaN for a configuration that does not run. For scoring
        only.
        """
        return statistics.median(self.samples_ns) if self.samples_ns else math.nan


@dataclass(frozen=True, slots=True)
class Landscape:
    """A recorded space: its knobs, its entries (one a configuration), and what is known of the
    recording.

    ``extents`` are the problem's, ``library_ns`` the samples of a vendor library on the same
    operands, ``device`` the GPU's name and ``default`` the file's default configuration.
    """

    kernel: str
    device: str
    extents: tuple[tuple[str, int], ...]
    knob_names: tuple[str, ...]
    entries: tuple[Entry, ...]
    library: str | None = None
    library_ns: tuple[float, ...] = ()
    default: KnobPayload | None = None
    sha256: str = ""
    by_knobs: dict[KnobPayload, Entry] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.entries:
            raise ValueError("expected at least one configuration, found none")
        for value in self.library_ns:
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"library: expected positive finite times, found {value!r}")
        table: dict[KnobPayload, Entry] = {}
        for entry in self.entries:
            if tuple(name for name, _ in entry.knobs) != tuple(sorted(self.knob_names)):
                raise ValueError(f"expected knobs {sorted(self.knob_names)}, found {entry.knobs}")
            if entry.knobs in table:
                raise ValueError(f"configuration {dict(entry.knobs)} stands twice")
            table[entry.knobs] = entry
        if self.default is not None and self.default not in table:
            raise ValueError(f"default {dict(self.default)} is not among the configurations")
        object.__setattr__(self, "by_knobs", table)

    def knob_values(self, name: str) -> tuple[Scalar, ...]:
        """The distinct values of a knob, in ascending order."""
        values = {dict(entry.knobs)[name] for entry in self.entries}
        return tuple(sorted(values, key=lambda value: (str(type(value)), value)))

    @property
    def median_entry(self) -> Entry:
        """The configuration of median time among those that ran (the lower one of two).

        Raises:
            ValueError: if none ran.
        """
        ran = sorted((e for e in self.entries if e.samples_ns), key=lambda e: (e.true_ns, e.knobs))
        if not ran:
            raise ValueError("no configuration of this landscape ran")
        return ran[(len(ran) - 1) // 2]
