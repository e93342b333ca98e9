"""Where an autotuned function's choices are made: a campaign a bucket, and what it finds."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.configs.build import build
from kernelwright.configs.choices import Choices, Place
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.folder import about
from kernelwright.configs.folders import cache_folder_of
from kernelwright.configs.load import read_config
from kernelwright.configs.spaces import with_template
from kernelwright.configs.tuning import keep, plan_with_cache
from kernelwright.env.types import Problem
from kernelwright.search.campaign import Campaign as Search
from kernelwright.search.store import MemoryStore
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.rows import Row

# One search a process at a time: two would disturb each other's clock.
_TUNING = threading.Lock()


class Tuner:
    """Choices for the buckets of one campaign.

    Args:
        campaign: as a mapping, without the extents of a bucket.
        key: the extents that a bucket gives.
        rows: of a table that goes before the cache.
        frozen: whether the table alone decides.

    Raises:
        ConfigError: if the campaign is refused, or a frozen table has no row of this device.
    """

    def __init__(
        self, campaign: Mapping[str, Any], key: Sequence[str], rows: Sequence[Row], *, frozen: bool
    ) -> None:
        self._campaign, self._key, self._rows, self.frozen = (
            dict(campaign),
            tuple(key),
            rows,
            frozen,
        )
        self.read = read_config(campaign)
        section = self.read.file.cache
        assert section is not None
        self._cache = TuningCache(cache_folder_of(section, self.read.folder))
        self._choices = Choices(None if frozen else self._cache, rows)
        self._places: dict[tuple[int, ...], Place] = {}
        if frozen:
            self._see_that_the_table_fits()

    def problem(self, **extents: int) -> Problem:
        """The problem at some extents of the key, those that are not given as it has them; with the
        campaign's template, so that a candidate of any of its spaces has a program.
        """
        choice = self.read.problem
        own = {name: value for name, value in choice.options.items() if name not in self._key}
        return with_template(self.read, choice.factory(**{**own, **extents}))

    def place(self, bucket: Mapping[str, int]) -> Place:
        """The place of a bucket; without extents that of the problem's own."""
        sizes = tuple(bucket.values())
        if sizes not in self._places:
            self._places[sizes] = Place.of(read_config(self._config(bucket)))
        return self._places[sizes]

    def found(self, bucket: Mapping[str, int]) -> Row | None:
        """What is chosen for a bucket; nothing is searched."""
        return self._choices.find(self.place(bucket), self.read.file.baseline)

    def all(self) -> list[Row]:
        """All choices for the problem on this device."""
        return self._choices.all(self.place({}))

    def searched(self, bucket: Mapping[str, int], *, again: bool = False) -> Row | None:
        """Search for a bucket's choice, unless another thread or process has meanwhile.

        Raises:
            ConfigError, DriverError, JudgeError, OSError: if it cannot be searched for or kept.
        """
        with _TUNING, self._cache.tuning(self.place(bucket).key):
            row = None if again else self.found(bucket)
            if row is None:
                built, store = build(read_config(self._config(bucket))), MemoryStore()
                store.set_meta(**about(built))
                try:
                    Search(plan_with_cache(built), store).run()
                finally:
                    keep(built, store, self._cache.folder, run=built.resolved["name"])
                row = self.found(bucket)
            return row

    def _config(self, bucket: Mapping[str, int]) -> dict[str, Any]:
        own = {name: size for name, size in bucket.items() if name in self._key}
        return {**self._campaign, "problem": {**self._campaign["problem"], **own}}

    def _see_that_the_table_fits(self) -> None:
        place = self.place({})
        if not place.missing and not any(place.is_of(row) for row in self._rows):
            here = f"{place.problem.identity} on {place.device}; {place.toolchain}"
            found = {f"{r['problem']} on {r['device']}; {r['toolchain'] or ''}" for r in self._rows}
            listed = " / ".join(sorted(found)) or "no rows"
            raise ConfigError("autotune", None, "table", f"rows of {here}", listed)
