"""A campaign that kills itself with SIGKILL at a chosen instant, for crash tests and benchmark.

    crash_child.py CONFIG OUT MODE AT [SET…]

MODE is where it dies: ``judge`` while trial AT is judged, ``commit`` between the writes of the
transaction that holds trial AT and its commit, ``after`` right after that commit, ``confirm``
between the writes of confirm verdict AT and their commit, ``confirming`` while finalist AT is
judged, ``call`` while call AT of a simulated model is on its way, ``answer`` between the write of
its answer and the commit, ``never``. Calls are counted from 0.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path

from kernelwright.agents.backends.mock import Mock
from kernelwright.configs import api
from kernelwright.env.types import Request, Stage, Verdict
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.evaluators.recorded import Recorded
from kernelwright.search.packing import unpacked
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import MODEL_CALL


def tables(folder: Path) -> list[list[tuple[object, ...]]]:
    """All three tables of a run without their wall times, texts as they were before packing."""
    db = sqlite3.connect(folder / "run.sqlite")
    out = []
    for table in ("trials", "verdicts", "events"):
        names = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] != "at"]
        rows = db.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()
        out.append([tuple(unpacked(v) if isinstance(v, bytes) else v for v in row) for row in rows])
    db.close()
    return out


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    config, out, mode, at_text, *overrides = sys.argv[1:]
    at = int(at_text)
    record = SqliteStore.record
    pending: dict[str, object] = {}
    confirmed = called = 0

    def watched_record(self, trials=(), verdicts=(), events=(), *rest, **named):  # type: ignore[no-untyped-def]
        pending["trials"], pending["verdicts"], pending["events"] = trials, verdicts, events
        record(self, trials, verdicts, events, *rest, **named)
        if mode == "after" and any(t.number == at for t in trials):
            die()
        pending.clear()

    def before_commit(self: SqliteStore) -> None:
        nonlocal confirmed
        if mode == "commit" and any(t.number == at for t in pending.get("trials", ())):
            die()
        is_answer = any(e.kind == MODEL_CALL for e in pending.get("events", ()))
        if mode == "answer" and is_answer and called == at + 1:
            die()
        if pending.get("verdicts"):
            if mode == "confirm" and confirmed == at:
                die()
            confirmed += 1

    SqliteStore.record = watched_record  # type: ignore[method-assign]
    SqliteStore._before_commit = before_commit  # type: ignore[method-assign]
    complete = Mock.complete

    def watched_call(self, request):  # type: ignore[no-untyped-def]
        nonlocal called
        if mode == "call" and called == at:
            die()
        called += 1
        return complete(self, request)

    Mock.complete = watched_call  # type: ignore[method-assign]
    for target in (GpuModel, Recorded):
        judge = target._judge

        def watched(self, request: Request, judge=judge) -> Verdict:  # type: ignore[no-untyped-def]
            if mode == "judge" and request.stage is Stage.SCREEN and request.trial == at:
                die()
            if mode == "confirming" and request.stage is not Stage.SCREEN and confirmed == at:
                die()
            return judge(self, request)

        target._judge = watched  # type: ignore[method-assign]
    api.run(config, out, overrides=overrides)


if __name__ == "__main__":
    main()
