"""The MCP server killed with SIGKILL while an agent works with it: what was answered is known, and
the run goes on to the end that it would have had.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from crash_child import tables

from kernelwright.configs import api
from kernelwright.configs.tools.desk import Desk
from kernelwright.configs.tools.session import Session
from kernelwright.configs.tools.tool import TOOLS

pytest.importorskip("mcp", reason="the extra mcp is not installed")

CAMPAIGN = """
name: fed
problem: {name: gemm_gpu, m: 512, n: 512, k: 512}
target: {name: gpu-model, noise: {lognormal: 0.02}}
driver: {name: random}
judge: {confirm: {finalists: 2, process_pairs: 2, pairs: 2}}
budget: {trials: 8}
seed: 4
"""
GOOD = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
HANDED_IN = [{**GOOD, "bk": bk} for bk in (16, 32, 64)]
# Seconds after which a server that does not answer is given up.
LIMIT_S = 120


class Agent:
    """A client that writes lines, so that it can leave before it hears the answer."""

    def __init__(self, config, out):
        command = [
            sys.executable,
            "-P",
            "-m",
            "kernelwright",
            "mcp",
            str(config),
            "--out",
            str(out),
        ]
        pipe = subprocess.PIPE
        # In a group of its own, so that nothing that it starts outlives it.
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True)
        self._watchdog = threading.Timer(LIMIT_S, self._server.kill)
        self._watchdog.start()
        self._sent = 0
        who = {"name": "tester", "version": "1"}
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}
        self.heard(self.send("initialize", **start))
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message):
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()

    def send(self, method, **params):
        self._sent += 1
        self._write({"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params})
        return self._sent

    def call(self, tool, **arguments):
        return self.send("tools/call", name=tool, arguments=arguments)

    def heard(self, number):
        for line in self._server.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        raise AssertionError("the server ended")

    def kill(self):
        os.killpg(self._server.pid, signal.SIGKILL)
        assert self._server.wait() == -signal.SIGKILL
        self._watchdog.cancel()
        self._server.stdin.close()
        self._server.stdout.close()


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "fed.yaml"
    path.write_text(CAMPAIGN)
    return path


def unbroken(config, out, count):
    """The tables of a run that was handed the first candidates and then confirmed."""
    session = Session(config, out)
    desk = Desk(session, lambda: "tester 1")
    submit = next(tool for tool in TOOLS if tool.name == "submit")
    for candidate in HANDED_IN[:count]:
        submit.call(desk, {"candidate": candidate})
    session.close()
    api.run(out / "config.yaml", out)
    return tables(out)


@pytest.mark.parametrize("place", ["handed in", "answered", "finishing"])
def test_a_server_that_is_killed_loses_nothing_that_it_answered(tmp_path, config, place):
    out = tmp_path / "run"
    agent = Agent(config, out)
    for candidate in HANDED_IN[:2]:
        result = agent.heard(agent.call("submit", candidate=candidate))
        assert result["structuredContent"]["judged"]
    last = agent.call("submit", candidate=HANDED_IN[2])
    if place != "handed in":
        agent.heard(last)
    if place == "finishing":
        agent.call("finish")
    agent.kill()
    api.run(out / "config.yaml", out)
    trials, verdicts, events = tables(out)
    assert len(trials) == 3 if place != "handed in" else len(trials) in (2, 3)
    expected = unbroken(config, tmp_path / "whole", len(trials))
    assert (trials, verdicts) == (expected[0], expected[1])
    assert [row[1] for row in events].count("submitted") == len(trials)
    assert events[-1][1] == "finished"
