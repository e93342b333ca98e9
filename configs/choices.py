"""Where `kernelwright.autotune` finds what was chosen for a shape: a table that was given, and the
tuning cache. Records of another device, compiler, problem or program are not choices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelwright.configs.build import parts_of
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import Campaign
from kernelwright.configs.tuning import device_of, tuning_key
from kernelwright.env.types import Problem, Status
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.identity import identity
from kernelwright.search.tuning.key import TuningKey, extents_of, spans
from kernelwright.search.tuning.rows import Row, best_row, candidate_of, read_table


@dataclass(frozen=True)
class Place:
    """What a choice is for: a problem at its extents, on a device, with the compiler that is
    there; ``missing`` is what is not.
    """

    problem: Problem
    options: Mapping[str, Any]
    device: str
    toolchain: str
    key: TuningKey
    missing: tuple[str, ...]

    @classmethod
    def of(cls, campaign: Campaign) -> Place:
        """The place of a campaign.

        Raises:
            ConfigError: if its parts do not fit together.
        """
        problem, target, judge = parts_of(campaign)
        resolved = {
            "problem": campaign.problem.plain,
            "target": campaign.target.plain,
            "seed": campaign.file.seed,
        }
        names = [name for name, _ in problem.workloads[0].extents]
        options = {k: v for k, v in campaign.problem.plain.items() if k not in ("name", *names)}
        key = tuning_key(problem, target, resolved, judge)
        return cls(problem, options, *device_of(target), key, tuple(target.missing))

    @property
    def extents(self) -> dict[str, int | str]:
        """Its extents by name."""
        return extents_of(spans(self.problem.workloads[0]))

    def is_of(self, row: Row) -> bool:
        """Whether a row is about this problem on this device by this compiler, at any extents."""
        about = (row["problem"], row["options"], row["device"], row["toolchain"] or "")
        return bool(about == (self.problem.identity, self.options, self.device, self.toolchain))

    def fits(self, row: Row) -> bool:
        """Whether a row is a choice for this place, and its configuration means what it meant."""
        if not self.is_of(row) or row["extents"] != self.extents:
            return False
        return bool(row["means"] == identity(self.problem, candidate_of(row)))


class Choices:
    """Choices by place.

    Args:
        cache: of this user or shared, None to look at the table alone.
        table: rows that go before the cache's.
    """

    def __init__(self, cache: TuningCache | None, table: Sequence[Row] = ()) -> None:
        self._cache, self._table = cache, tuple(table)

    def find(self, place: Place, baseline: str) -> Row | None:
        """The choice for a place: the table's, else the best of the cache, of those over this
        baseline if there are any.
        """
        for rows in (self._table, self._kept(place.key)):
            fitting = [row for row in rows if place.fits(row)]
            alike = [row for row in fitting if row["baseline"] == baseline]
            if fitting:
                return best_row(alike or fitting)
        return None

    def all(self, place: Place) -> list[Row]:
        """Every choice for this problem on this device, at any extents."""
        rows = [row for row in self._table if place.is_of(row)]
        if self._cache is not None:
            wanted = replace(place.key, workloads=(), computes="")
            for key in self._cache.known(place.problem.identity):
                if replace(key, workloads=(), computes="") == wanted:
                    rows += self._kept(key)
        return rows

    def _kept(self, key: TuningKey) -> tuple[Row, ...]:
        return () if self._cache is None else self._cache.read(key).choices


def table_of(path: str | Path) -> list[Row]:
    """The rows of a table that ``export --table`` wrote as JSON.

    Raises:
        ConfigError: if it is none.
    """
    try:
        return read_table(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), None, "", "a table as JSON", str(error)) from None


def is_worth_using(row: Row) -> bool:
    """Whether a choice is to be preferred to the plain function: not where it was confirmed to be
    slower than the baseline or than the library.
    """
    slower = row["library_high"] is not None and row["library_high"] < 1
    return Status(row["status"]) is not Status.LOSS and row["speedup"] >= 1 and not slower
