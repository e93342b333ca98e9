"""Where trials, verdicts and events are kept: SQLite in WAL mode, or memory.

Tables: ``trials`` (one row a candidate), ``verdicts`` (trial, stage, round), ``events``; beside
them ``meta`` (the resolved campaign, its baseline) and ``sittings`` (wall time). One `record` is
one transaction, so a process killed at any instant leaves whole records and nothing else.
``synchronous=NORMAL`` survives the death of the process; a transaction with an event that cost
money is synced to the disk (``FULL``). Only the columns named ``at`` and the table ``sittings``
hold wall times. Longer texts are compressed (`packing`): candidates, verdicts and payloads.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from kernelwright.env.records import dumps
from kernelwright.env.types import Stage, Verdict
from kernelwright.search.driver import Notice
from kernelwright.search.packing import packed
from kernelwright.search.rows import EVENT_COLUMNS, TRIAL_COLUMNS, about_of, event_of, trials_of
from kernelwright.search.trial import Event, Trial
from kernelwright.search.underway import Underway

SCHEMA_VERSION = 3
# Version 2 has the same tables with texts as they are; one that is written to becomes version 3.
READABLE = (2, SCHEMA_VERSION)
# The file of a run's folder that holds its store.
DATABASE = "run.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trials (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, candidate TEXT NOT NULL,
    objective REAL, proposer TEXT NOT NULL, parents TEXT NOT NULL, seed INTEGER NOT NULL,
    ask INTEGER NOT NULL, tokens INTEGER NOT NULL, usd REAL NOT NULL, at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS verdicts (
    trial INTEGER NOT NULL REFERENCES trials (number), stage TEXT NOT NULL,
    round INTEGER NOT NULL, status TEXT NOT NULL, verdict TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (trial, stage, round)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, ask INTEGER NOT NULL, slot INTEGER NOT NULL,
    payload TEXT NOT NULL, tokens INTEGER NOT NULL, usd REAL NOT NULL, at REAL NOT NULL,
    UNIQUE (ask, slot, kind)
);
CREATE TABLE IF NOT EXISTS sittings (
    id INTEGER PRIMARY KEY, started REAL NOT NULL,
    search_s REAL NOT NULL, confirm_s REAL NOT NULL
);
"""


# The trials that were confirmed, and some of the greatest objective.
_LEADING = (
    "SELECT trial FROM verdicts WHERE stage = 'confirm' UNION SELECT number FROM (SELECT number"
    " FROM trials WHERE objective IS NOT NULL ORDER BY objective DESC, number LIMIT ?)"
)


class StoreError(RuntimeError):
    """A store that cannot be used: held by another process, damaged, or of another version."""


class NotBegunError(StoreError):
    """A run that was stopped while it started, before anything was recorded."""

    def __init__(self, path: Path) -> None:
        found = "one that was stopped before it recorded anything; the same command starts it"
        super().__init__(f"{path}: expected a run, found {found}")


@dataclass(frozen=True, slots=True)
class Sitting:
    """Wall time of this sitting so far, in seconds."""

    search_s: float = 0.0
    confirm_s: float = 0.0


class Store(Protocol):
    """Keeps what a campaign records. One `record` is all or nothing."""

    def record(
        self,
        trials: Sequence[Trial] = (),
        verdicts: Sequence[tuple[int, Stage, Verdict]] = (),
        events: Sequence[Event] = (),
        sitting: Sitting = Sitting(),
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Append new trials, later verdicts of known trials and events; known events are left as
        they are. ``meta`` is replaced with the rest.
        """
        ...

    def trials(self) -> list[Trial]:
        """All trials in order."""
        ...

    def events(self) -> list[Event]:
        """All events in order."""
        ...

    def meta(self) -> dict[str, str]:
        """What is known of the campaign."""
        ...

    def set_meta(self, **values: str) -> None:
        """Add or replace what is known."""
        ...

    def spent(self, *, earlier: bool = False) -> Sitting:
        """Wall time summed over all sittings, or over those before this one."""
        ...


class MemoryStore:
    """A store that lives as long as the process: for comparisons and tests."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._events: dict[tuple[int, int, str], Event] = {}
        self._meta: dict[str, str] = {}
        self._now = Sitting()

    def record(
        self,
        trials: Sequence[Trial] = (),
        verdicts: Sequence[tuple[int, Stage, Verdict]] = (),
        events: Sequence[Event] = (),
        sitting: Sitting = Sitting(),
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Append; see `Store.record`."""
        self._now = sitting
        self._meta.update(meta or {})
        self._trials.extend(trials)
        for number, stage, verdict in verdicts:
            old = self._trials[number]
            # A race has rounds; what is judged again replaces what it was.
            again = stage is not Stage.RACE
            kept = tuple(pair for pair in old.verdicts if not (again and pair[0] == stage))
            order = list(Stage)
            verdicts_ = sorted((*kept, (stage, verdict)), key=lambda pair: order.index(pair[0]))
            self._trials[number] = replace(old, verdicts=tuple(verdicts_))
        for item in events:
            self._events.setdefault((item.ask, item.slot, item.kind), item)

    def trials(self) -> list[Trial]:
        """All trials in order."""
        return list(self._trials)

    def events(self) -> list[Event]:
        """All events in order."""
        return list(self._events.values())

    def meta(self) -> dict[str, str]:
        """What is known of the campaign."""
        return dict(self._meta)

    def set_meta(self, **values: str) -> None:
        """Add or replace what is known."""
        self._meta.update(values)

    def spent(self, *, earlier: bool = False) -> Sitting:
        """Wall time of its one sitting."""
        return Sitting() if earlier else self._now


class StoreJournal:
    """A driver's window on the store: its own earlier events, and a way to record more.

    Args:
        events: the earlier ones.
        keep: records another one.
        calls: notes of calls on their way; without, none is kept.
        left_s: the wall seconds that the campaign has left for proposing.
        notice: is told how calls are doing.
    """

    def __init__(
        self,
        events: Sequence[Event],
        keep: Callable[[Event], None],
        calls: Underway | None = None,
        left_s: Callable[[], float] = lambda: math.inf,
        notice: Callable[[Notice], None] | None = None,
    ) -> None:
        self._past = {(e.kind, e.ask, e.slot): e for e in events}
        self._record, self._calls, self._left_s = keep, calls, left_s
        self._notice = notice

    def past(self, kind: str, ask: int, slot: int) -> Event | None:
        """The event of that place that an earlier sitting recorded."""
        return self._past.get((kind, ask, slot))

    def record(self, event: Event) -> None:
        """Record an event, unless it is known."""
        if (event.kind, event.ask, event.slot) not in self._past:
            self._past[event.kind, event.ask, event.slot] = event
            self._record(event)

    def left_s(self) -> float:
        """The wall seconds that the campaign has left for proposing."""
        return self._left_s()

    @property
    def unanswered(self) -> Sequence[Event]:
        """The calls of earlier sittings that were never answered."""
        return () if self._calls is None else self._calls.unanswered

    def reserve(self, call: Event) -> bool:
        """Note a call that is about to be made, if there is time for it."""
        return self._calls is None or self._calls.reserve(call)

    def release(self, call: Event) -> None:
        """Forget a call that came to nothing."""
        if self._calls is not None:
            self._calls.release(call)

    def notice(self, notice: Notice) -> None:
        """Tell whoever watches, if anybody does."""
        if self._notice is not None:
            self._notice(notice)


class SqliteStore:
    """A store in one SQLite file.

    Args:
        path: the file; it is made with its folder if missing.
        readonly: only look; no lock is taken and nothing is made.

    Raises:
        StoreError: if another process is writing, or the file is not a store of this version.
        NotBegunError: if it is to be looked at and nothing was ever recorded in it.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        self._lock: int | None = None
        self._sitting: int | None = None
        self._is_durable = False
        if readonly:
            if not path.is_file():
                raise StoreError(f"{path}: no such run")
            self._db = _look_at(path)
        else:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._lock = _take_lock(path.with_suffix(".lock"))
            except OSError as error:
                raise StoreError(f"{path.parent}: expected a folder to write to: {error}") from None
            try:
                self._db = sqlite3.connect(path, isolation_level=None)
            except sqlite3.Error as error:
                os.close(self._lock)
                raise StoreError(f"{path}: expected a file to write to: {error}") from None
        try:
            self._prepare(readonly=readonly)
        except sqlite3.DatabaseError as error:
            self.close()
            # What is to be rolled back is the change to a log, which comes before all else.
            if readonly and getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK":
                raise NotBegunError(path) from None
            raise StoreError(f"{path}: expected a kernelwright store: {error}") from None
        except StoreError:
            self.close()
            raise

    def _prepare(self, *, readonly: bool) -> None:
        self._db.execute("PRAGMA busy_timeout=10000")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, *READABLE):
            raise StoreError(
                f"{self.path}: expected store version {SCHEMA_VERSION}, found {version}"
            )
        if version == 0:
            self._see_that_it_is_new(readonly=readonly)
        if readonly:
            return
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")

    def _see_that_it_is_new(self, *, readonly: bool) -> None:
        names = [name for (name,) in self._db.execute("SELECT name FROM sqlite_master LIMIT 3")]
        if names:
            found = f"another database ({', '.join(names)}, …)"
            raise StoreError(f"{self.path}: expected a kernelwright store, found {found}")
        if readonly:
            raise NotBegunError(self.path)

    def close(self) -> None:
        """Close the file and release the lock."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        try:
            if durable != self._is_durable:
                self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self._is_durable = durable
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._before_commit()
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise StoreError(f"{self.path}: could not write: {error}") from error
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: could not read: {error}") from error

    def _before_commit(self) -> None:
        """Between the writes and their commit; a test of crashes overrides it."""

    def record(
        self,
        trials: Sequence[Trial] = (),
        verdicts: Sequence[tuple[int, Stage, Verdict]] = (),
        events: Sequence[Event] = (),
        sitting: Sitting = Sitting(),
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Append in one transaction; see `Store.record`."""
        now = time.time()
        rows = [_trial_row(trial, now) for trial in trials]
        judged = [(t.number, stage, verdict) for t in trials for stage, verdict in t.verdicts]
        paid = any(e.tokens or e.usd for e in events)
        with self._transaction(durable=paid):
            if rows:
                self._db.executemany("INSERT INTO trials VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)
            if judged or verdicts:
                # A race has rounds; what is judged again replaces what it was.
                self._db.executemany(
                    "INSERT OR REPLACE INTO verdicts VALUES (?1, ?2, CASE ?2 WHEN 'race' THEN"
                    " (SELECT count(*) FROM verdicts WHERE trial = ?1 AND stage = ?2) ELSE 0 END,"
                    " ?3, ?4, ?5)",
                    _verdict_rows([*judged, *verdicts], now),
                )
            if events:
                self._db.executemany(
                    "INSERT OR IGNORE INTO events (kind, ask, slot, payload, tokens, usd, at)"
                    " VALUES (?,?,?,?,?,?,?)",
                    _event_rows(events, now),
                )
            if meta:
                self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", list(meta.items()))
            self._keep_sitting(sitting, now)

    def _keep_sitting(self, sitting: Sitting, now: float) -> None:
        if self._sitting is None:
            cursor = self._db.execute(
                "INSERT INTO sittings (started, search_s, confirm_s) VALUES (?,?,?)",
                (now, sitting.search_s, sitting.confirm_s),
            )
            self._sitting = cursor.lastrowid
        else:
            self._db.execute(
                "UPDATE sittings SET search_s=?, confirm_s=? WHERE id=?",
                (sitting.search_s, sitting.confirm_s, self._sitting),
            )

    def trials(self) -> list[Trial]:
        """All trials in order.

        Raises:
            StoreError: if the file cannot be read, or holds something else; as all that read.
        """
        return self._trials("SELECT number FROM trials", are_all=True)

    def leading(self, most: int) -> list[Trial]:
        """The confirmed trials, and of all so many of the greatest objective, in order: a look at
        many runs has no time for the rest.
        """
        return self._trials(_LEADING, most, are_all=False)

    def _trials(self, numbers: str, *values: object, are_all: bool) -> list[Trial]:
        """The trials whose numbers a query finds."""
        columns = ", ".join(TRIAL_COLUMNS)
        query = f"SELECT {columns} FROM trials WHERE number IN ({numbers}) ORDER BY number"
        rows = self._read(query, *values)
        judged = self._read(
            f"SELECT trial, stage, verdict FROM verdicts WHERE trial IN ({numbers})"
            " ORDER BY trial, stage, round",
            *values,
        )
        with self._believing():
            return trials_of(rows, judged, are_all=are_all)

    def events(self) -> list[Event]:
        """All events in order."""
        rows = self._read(f"SELECT {', '.join(EVENT_COLUMNS)} FROM events ORDER BY id")
        with self._believing():
            return [event_of(row) for row in rows]

    def meta(self) -> dict[str, str]:
        """What is known of the campaign."""
        rows = self._read("SELECT name, value FROM meta")
        with self._believing():
            return about_of(rows)

    @contextmanager
    def _believing(self) -> Iterator[None]:
        """Say where the damage is, if rows are none that a campaign has written."""
        try:
            yield
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            what = str(error).splitlines()[0]
            raise StoreError(f"{self.path}: expected a whole store, found damage: {what}") from None

    def set_meta(self, **values: str) -> None:
        """Add or replace what is known."""
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?,?)", list(values.items()))

    def latest(self) -> float:
        """When the latest verdict was recorded, in s since 1970; 0 without any."""
        ((at,),) = self._read("SELECT coalesce(max(at), 0) FROM verdicts")
        return float(at)

    def spent(self, *, earlier: bool = False) -> Sitting:
        """Wall time summed over all sittings, or over those before this one."""
        query = "SELECT total(search_s), total(confirm_s) FROM sittings WHERE id IS NOT ?"
        (row,) = self._read(query, self._sitting if earlier else None)
        return Sitting(*row)


def is_begun(path: Path) -> bool:
    """Whether a run recorded what it is, and did not only make this file as it started.

    Raises:
        StoreError: if there is a file that is none.
    """
    if not path.is_file():
        return False
    try:
        with SqliteStore(path, readonly=True) as store:
            return bool(store.meta())
    except NotBegunError:
        return False


def _trial_row(t: Trial, now: float) -> tuple[object, ...]:
    head = (t.number, t.candidate.key, packed(dumps(t.candidate)), t.objective, t.proposer)
    return (*head, json.dumps(t.parents), t.seed, t.ask, t.tokens, t.usd, now)


def _verdict_rows(
    verdicts: Iterable[tuple[int, Stage, Verdict]], now: float
) -> list[tuple[int, str, str, str | bytes, float]]:
    return [(n, stage.value, v.status.value, packed(dumps(v)), now) for n, stage, v in verdicts]


def _event_rows(events: Iterable[Event], now: float) -> list[tuple[object, ...]]:
    return [(e.kind, e.ask, e.slot, packed(e.payload), e.tokens, e.usd, now) for e in events]


def _look_at(path: Path) -> sqlite3.Connection:
    """A file opened to be read, also where nothing can be written beside it, as an archive's."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, isolation_level=None)
    log = path.with_name(f"{path.name}-wal")
    try:
        db.execute("PRAGMA user_version")
    except sqlite3.DatabaseError:  # said where the file is prepared, if it stays so
        # Only where no log could hold more than the file does.
        if not os.access(path.parent, os.W_OK) and not log.exists():
            db.close()
            db = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return db


def _take_lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise StoreError(f"{path.parent}: another process is running this campaign") from None
    return handle
