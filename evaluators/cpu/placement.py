"""Which core does what: the judge spins on one, the workers run on others, one at a time.

Two spinning processes that nobody pinned can share a core. A lock of this user's keeps two judges
from measuring at once on one machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.compiler.runtime.folders import user_folder

# How long a judge waits for others of its user; one holds the machine for a verdict at a time.
LOCK_WAIT_S, _POLL_S = 1800.0, 0.02


@dataclass(frozen=True, slots=True)
class Placement:
    """The judge's core and those of the workers.

    ``blocking``: there is no core on which the judge could spin while a worker has all of its own,
    so it sleeps during a call, and the clock has a wake-up in it.
    """

    judge: int
    workers: tuple[int, ...]
    blocking: bool


def placement(threads: int) -> Placement:
    """Where a judge and workers of so many threads run, among the cores it may use."""
    cores = sorted(os.sched_getaffinity(0))
    mine = cores[0]
    siblings = _siblings(mine)
    # What shares a core with the judge comes last.
    others = sorted((c for c in cores if c != mine), key=lambda c: (c in siblings, -c))
    if threads <= len(others):
        return Placement(mine, tuple(others[:threads]), blocking=False)
    return Placement(mine, tuple([*others, mine][:threads]), blocking=True)


def _siblings(core: int) -> frozenset[int]:
    """The logical processors of the same core."""
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        text = path.read_text()
        found: set[int] = set()
        for part in text.strip().split(","):
            low, _, high = part.partition("-")
            found.update(range(int(low), int(high or low) + 1))
        return frozenset(found)
    except (OSError, ValueError):
        return frozenset()


@contextmanager
def at_work(where: Placement) -> Iterator[None]:
    """Keep this process's threads on the judge's core, and other judges of this user waiting."""
    before: dict[int, set[int]] = {}
    with _locked():
        try:
            for task in (int(path.name) for path in Path("/proc/self/task").iterdir()):
                with contextlib.suppress(OSError):
                    before[task] = os.sched_getaffinity(task)
                    os.sched_setaffinity(task, {where.judge})
            yield
        finally:
            for task, cores in before.items():
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(task, cores)


@contextmanager
def _locked() -> Iterator[None]:
    with (user_folder("locks") / "cpu").open("w") as lock:
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    what = f"another judge has measured for {LOCK_WAIT_S:.0f} s: is it stopped?"
                    raise TimeoutError(f"{lock.name}: {what}") from None
                time.sleep(_POLL_S)
        yield
