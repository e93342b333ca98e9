"""A process that competes for a core in short bursts: the noise of a shared machine, on purpose.

It is bounded in number and length of its bursts, ends with whoever started it, and touches no other
process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# At most so many bursts, this long and so far apart: 20 ms every 200 ms, for four minutes.
BURSTS, BUSY_S, IDLE_S = 1200, 0.02, 0.18
_PROGRAM = """
import os, sys, time
core, bursts, busy_s, idle_s, parent = map(float, sys.argv[1:])
os.sched_setaffinity(0, {int(core)})
for _ in range(int(bursts)):
    end = time.perf_counter() + busy_s
    while time.perf_counter() < end:
        pass
    if os.getppid() != int(parent):
        break
    time.sleep(idle_s)
"""


@contextmanager
def competing(
    core: int, *, bursts: int = BURSTS, busy_s: float = BUSY_S, idle_s: float = IDLE_S
) -> Iterator[int]:
    """A process that is busy on a core now and then, until the block ends; its number.

    Args:
        core: the logical processor.
        bursts: how many there are at most.
        busy_s: the length of one in s.
        idle_s: what lies between two, in s.
    """
    words = (core, bursts, busy_s, idle_s, os.getpid())
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
