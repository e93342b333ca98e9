from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest
from contracts import StoreContract, judged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import trials

from kernelwright.env.types import knob_candidate
from kernelwright.search.store import (
    MemoryStore,
    NotBegunError,
    Sitting,
    SqliteStore,
    StoreError,
    is_begun,
)
from kernelwright.search.trial import Event, Trial, event


class TestMemoryStore(StoreContract):
    def make(self):
        return MemoryStore()


class TestSqliteStore(StoreContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = tmp_path / "run.sqlite"
        self.opened = []
        yield
        for store in self.opened:
            store.close()

    def make(self):
        self.opened.append(SqliteStore(self.path))
        return self.opened[-1]

    def test_another_sitting_adds_its_time(self):
        store = self.make()
        store.record([self.one(0)], sitting=Sitting(2.0, 1.0))
        store.close()
        again = self.make()
        again.record([self.one(1)], sitting=Sitting(5.0, 0.0))
        assert again.spent(earlier=True) == Sitting(2.0, 1.0)
        assert again.spent() == Sitting(7.0, 1.0)

    def test_two_writers_are_refused(self):
        self.make()
        with pytest.raises(StoreError, match="another process is running"):
            self.make()

    def test_a_reader_looks_while_a_writer_writes(self):
        store = self.make()
        store.record([self.one(0)])
        with SqliteStore(self.path, readonly=True) as reader:
            assert len(reader.trials()) == 1
            store.record([self.one(1)])
            assert len(reader.trials()) == 2

    def test_a_failed_record_leaves_nothing(self):
        store = self.make()
        store.record([self.one(0)])
        with pytest.raises(StoreError, match="UNIQUE"):
            store.record([self.one(1), self.one(0)])
        assert len(store.trials()) == 1
        store.record([self.one(1)])
        assert len(store.trials()) == 2

    def test_paid_events_are_synced_to_disk(self):
        store = self.make()
        seen = []
        store._db.set_trace_callback(seen.append)
        store.record(events=[event("note", 0)])
        assert not any("FULL" in text for text in seen)
        store.record(events=[Event("model_call", 1, 0, "{}", tokens=5, usd=0.01)])
        assert seen.index("PRAGMA synchronous=FULL") < seen.index(
            "COMMIT", seen.index("PRAGMA synchronous=FULL")
        )
        store.record(events=[event("note", 2)])
        assert store._db.execute("PRAGMA synchronous").fetchone() == (1,)
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.data())
def test_any_trial_survives_sqlite(tmp_path_factory, data):
    trial: Trial = data.draw(trials())
    path = tmp_path_factory.mktemp("s") / "run.sqlite"
    with SqliteStore(path) as store:
        store.record([trial])
        assert store.trials() == [trial]


def test_files_that_are_no_stores_are_refused(tmp_path):
    path = tmp_path / "run.sqlite"
    with pytest.raises(StoreError, match="no such run"):
        SqliteStore(path, readonly=True)
    path.write_text("this is not a database, " * 100)
    with pytest.raises(StoreError, match="expected a kernelwright store"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="expected a kernelwright store"):
        SqliteStore(path, readonly=True)
    assert path.read_text().startswith("this is not")


def test_a_store_of_another_version_is_refused(tmp_path):
    path = tmp_path / "run.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(StoreError, match="expected store version 3, found 99"):
        SqliteStore(path)


def test_a_run_that_was_stopped_as_it_started_is_not_begun(tmp_path):
    path = tmp_path / "run.sqlite"
    assert not is_begun(path)
    path.touch()
    assert not is_begun(path)
    # What SQLite leaves when it is killed while it makes the file's first page.
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE a (b)")
        db.execute("DROP TABLE a")
    db.close()
    journal = path.with_name("run.sqlite-journal")
    journal.write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    with pytest.raises(NotBegunError):
        SqliteStore(path, readonly=True)
    assert not is_begun(path)
    journal.unlink()
    # And what it makes of it before there is a table.
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
    db.close()
    assert not is_begun(path)
    with pytest.raises(NotBegunError, match="stopped before it recorded anything"):
        SqliteStore(path, readonly=True)
    with SqliteStore(path) as store:
        assert not is_begun(path)
        store.set_meta(config="{}")
    assert is_begun(path)


def test_another_program_s_database_is_left_alone(tmp_path):
    path = tmp_path / "run.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE songs (name TEXT)")
    db.close()
    before = path.read_bytes()
    for readonly in (True, False):
        with pytest.raises(StoreError, match=r"expected a kernelwright store, found .*songs"):
            SqliteStore(path, readonly=readonly)
    assert path.read_bytes() == before


def test_the_lock_goes_with_its_process(tmp_path):
    path = tmp_path / "run.sqlite"
    code = "import os, pathlib, sys; from kernelwright.search.store import SqliteStore\n"
    code += "SqliteStore(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-P", "-c", code, str(path)], check=False)
    assert killed.returncode == -9
    SqliteStore(path).close()


def test_impossible_trials_are_refused():
    good = judged(0, knob_candidate({"a": 1}), 1.0)
    fields = {name: getattr(good, name) for name in Trial.__slots__}
    for change, message in [
        ({"number": -1}, "number"),
        ({"verdicts": ()}, "one verdict a stage"),
        ({"verdicts": good.verdicts * 2}, "one verdict a stage"),
        ({"objective": None}, "found None for status ok"),
        ({"objective": float("nan")}, "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            Trial(**fields | change)


DAMAGE = [
    ("UPDATE events SET payload = 'no JSON'", "payload: expected JSON"),
    ("UPDATE events SET payload = 'null'", "payload: expected dict"),
    ("UPDATE events SET payload = ?", "payload: expected JSON"),
    ("UPDATE events SET payload = '{}' WHERE kind = 'stopped'", "rule: expected str"),
    ("UPDATE events SET payload = '{\"completion\": 3}'", "completion: expected dict"),
    ("UPDATE events SET tokens = 'many'", "tokens: expected int"),
    ("UPDATE events SET tokens = -5", "tokens: expected at least 0"),
    ("UPDATE events SET usd = 9e999", "usd: expected a finite amount"),
    ("UPDATE events SET usd = -1.0", "usd: expected a finite amount"),
    ("UPDATE events SET usd = 'free'", "usd: expected float"),
    ("UPDATE events SET ask = x'ff'", "ask: expected int"),
    ("UPDATE events SET kind = x'ff'", "kind: expected str"),
    ("UPDATE trials SET usd = 'free'", "usd: expected float"),
    ("UPDATE trials SET parents = ?", "parents: expected JSON"),
    ("UPDATE trials SET objective = 1e18", "objective: expected at most 1000"),
    ("UPDATE trials SET number = 7", "number: expected 0"),
    ("DELETE FROM verdicts", "verdicts: expected at least one"),
    ("UPDATE meta SET value = 'no JSON'", "config: expected JSON"),
    ("UPDATE meta SET name = 'baseline'", "baseline: expected an object with a name"),
    ("UPDATE meta SET name = 'bounds'", "bounds: expected list"),
    ("UPDATE meta SET value = 3", "config: expected dict"),
]


@pytest.mark.parametrize(("edit", "says"), DAMAGE)
def test_an_edited_record_is_refused_with_the_place(tmp_path, edit, says):
    path = tmp_path / "run.sqlite"
    with SqliteStore(path) as store:
        call = Event("model_call", 1, 0, "{}", tokens=5, usd=0.01)
        store.record(
            [judged(0, knob_candidate({"a": 1}), 0.5)],
            events=[call, event("stopped", 2, rule="calls", reason="enough")],
        )
        store.set_meta(config="{}")
    db = sqlite3.connect(path)
    db.execute(edit, ["[" * 100_000] if "?" in edit else [])
    db.commit()
    db.close()
    with SqliteStore(path, readonly=True) as store, pytest.raises(StoreError) as caught:
        store.trials(), store.events(), store.meta()
    assert "expected a whole store, found damage" in str(caught.value)
    assert says in str(caught.value)


def test_a_store_that_another_program_holds_is_refused_in_words(tmp_path):
    with SqliteStore(tmp_path / "run.sqlite") as store:
        store._db.execute("PRAGMA busy_timeout=10")
        other = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="could not write"):
            store.set_meta(version="1")
        other.execute("ROLLBACK")
        other.close()
        store.set_meta(version="1")
        assert store.meta() == {"version": "1"}


def test_a_run_in_a_folder_that_nobody_may_write_to_can_be_looked_at(tmp_path):
    folder = tmp_path / "archive"
    with SqliteStore(folder / "run.sqlite") as store:
        store.set_meta(version="1")
    folder.chmod(0o555)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write to any folder")
        with SqliteStore(folder / "run.sqlite", readonly=True) as store:
            assert store.meta() == {"version": "1"}
    finally:
        folder.chmod(0o755)
