"""Where an autotuned function's choices are made: a campaign a bucket, and what it finds.

Searches are told of through `logging`: when one begins and ends at INFO, and at WARNING, which a
program that has set up no logging prints on stderr, once a call has taken as long as `SLOW_S`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from kernelwright.env.words import counted
from kernelwright.search.campaign import Campaign as Search
from kernelwright.search.campaign import Progress
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import summarise
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.rows import Row

_LOG = logging.getLogger(__name__)
SLOW_S = 5.0
# One search a process at a time: two would disturb each other's clock.
_TUNING = threading.Lock()


class Tuner:
    """Choices for the buckets of one campaign.

    Args:
        campaign: as a mapping, without the extents of a bucket.
        key: the extents that a bucket gives.
        rows: of a table that goes before the cache.
        frozen: whether the table alone decides.
        observe: called with a search's progress after everything that was recorded.

    Raises:
        ConfigError: if the campaign is refused, or a frozen table has no row of this device.
    """

    def __init__(
        self,
        campaign: Mapping[str, Any],
        key: Sequence[str],
        rows: Sequence[Row],
        *,
        frozen: bool,
        observe: Callable[[Progress], None] | None = None,
    ) -> None:
        self._campaign, self._key = dict(campaign), tuple(key)
        self._rows, self.frozen, self._observe = rows, frozen, observe
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
        place = self.place(bucket)
        with self._told(place) as found, _TUNING, self._cache.tuning(place.key):
            row = None if again else self.found(bucket)
            if row is not None:
                found.append("found by another thread or process meanwhile")
            else:
                built, store = build(read_config(self._config(bucket))), MemoryStore()
                store.set_meta(**about(built))
                try:
                    Search(plan_with_cache(built), store, observe=self._observe).run()
                finally:
                    keep(built, store, self._cache.folder, run=built.resolved["name"])
                row = self.found(bucket)
                summary = summarise(store)
                found.append(
                    f"{counted(summary['trials'], 'trial')}, {summary['claim'] or 'nothing valid'}"
                )
            return row

    @contextmanager
    def _told(self, place: Place) -> Iterator[list[str]]:
        """Tell of a search; what it yields is for a word on how it ended."""
        extents = ", ".join(f"{name}={size}" for name, size in place.extents.items())
        what = f"{place.problem.name} {extents}"
        budget = self.read.file.budget.model_dump(exclude_none=True)
        limits = " or ".join(f"{most:g} {of}" for of, most in budget.items())
        begins = f"{what}: tuning on {place.device}, at most {limits} and a confirmation"
        slow, began = threading.Event(), time.monotonic()

        def tell() -> None:
            slow.set()
            _LOG.warning("%s; kept in %s", begins, self._cache.folder)

        _LOG.info("%s", begins)
        timer, ended = threading.Timer(SLOW_S, tell), list[str]()
        timer.daemon = True
        timer.start()
        try:
            yield ended
        finally:
            timer.cancel()
            seconds, said = time.monotonic() - began, ", ".join(ended) or "not tuned"
            level = logging.WARNING if slow.is_set() else logging.INFO
            _LOG.log(level, "%s: %s, after %.1f s", what, said, seconds)

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
