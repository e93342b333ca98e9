from __future__ import annotations

import hashlib
import random
import sqlite3

import pytest
from contracts import judged
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.types import knob_candidate
from kernelwright.search.packing import _DICTIONARIES, packed, unpacked
from kernelwright.search.store import SqliteStore, StoreError
from kernelwright.search.trial import event

# What was written in the first days of dictionary 1; it must be read for ever.
WRITTEN = bytes.fromhex("01a3a03641d6580b00")
FIRST = "96bfa081ea5b5d51"
COLUMNS = (("trials", "candidate"), ("verdicts", "verdict"), ("events", "payload"))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    assert unpacked(packed(text)) == text


def test_a_record_becomes_short_and_what_would_not_stays_as_it_is():
    call = event("model_call", 1, completion={"text": "the same words, " * 40}).payload
    assert len(packed(call)) < len(call) / 4
    noise = "".join(map(chr, random.Random(0).choices(range(1, 128), k=100)))
    for text in ("{}", "0123456789" * 6, noise):
        assert packed(text) == text


def test_what_was_written_long_ago_is_read():
    assert unpacked(WRITTEN) == (
        '{"status":"ok","code":null,"evidence":"","max_error":null,"status":"ok"}'
    )


def test_a_dictionary_that_is_in_use_does_not_change():
    assert hashlib.blake2b(_DICTIONARIES[1], digest_size=8).hexdigest() == FIRST


@pytest.mark.parametrize(
    "damaged", [b"", b"\x63abc", WRITTEN[:-2], WRITTEN + b"x", b"\x01\xff\xff\xff"]
)
def test_damage_is_said(damaged):
    with pytest.raises(ValueError, match=r"expected a.*packed text"):
        unpacked(damaged)


def record(path):
    trials = [judged(i, knob_candidate({"a": i}), 0.5) for i in range(3)]
    events = [event("model_call", i, text="said before, " * 20) for i in range(3)]
    with SqliteStore(path) as store:
        store.record(trials, events=events)
    return trials, events


def test_a_store_of_the_version_before_is_read_and_goes_on(tmp_path):
    path = tmp_path / "run.sqlite"
    trials, events = record(path)
    with sqlite3.connect(path) as db:
        for table, column in COLUMNS:
            for (value,) in db.execute(f"SELECT {column} FROM {table}").fetchall():
                change = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
                db.execute(change, (unpacked(value), value))
        db.execute("PRAGMA user_version = 2")
    db.close()
    before = path.read_bytes()
    with SqliteStore(path, readonly=True) as store:
        assert (store.trials(), store.events()) == (trials, events)
    assert path.read_bytes() == before
    with SqliteStore(path) as store:
        store.record([judged(3, knob_candidate({"a": 3}), 0.5)])
        assert store.trials()[:3] == trials
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_damaged_text_is_a_damaged_store(tmp_path, table, column):
    path = tmp_path / "run.sqlite"
    record(path)
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", (WRITTEN[:-3],))
    db.close()
    with (
        SqliteStore(path, readonly=True) as store,
        pytest.raises(StoreError, match="expected a whole store, found damage"),
    ):
        _ = store.events() if table == "events" else store.trials()
