"""A judge that is killed leaves no worker behind."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.cc

JUDGE = """
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.types import Reference, Request, Role, Stage
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
problem = matmul(m=16, n=24, k=8)
judge, base = Cpu(problem), Reference(Role.BASELINE, unscheduled_program(problem))
while True:
    judge.evaluate([Request(judge.library, Stage.SCREEN, (base,))])
"""


def library_workers(judge):
    """The processes of a judge that serve a library."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes()
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it is over by now
            continue
        if b"cpu.library" in words and parent == judge:
            found.add(int(place.name))
    return found


def is_running(number):
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def test_the_worker_of_a_library_ends_with_its_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with subprocess.Popen([sys.executable, "-P", "-c", JUDGE]) as judge:
        try:
            end = time.monotonic() + 60
            while not (workers := library_workers(judge.pid)):
                assert judge.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
        finally:
            judge.kill()
    end = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(is_running, workers))
