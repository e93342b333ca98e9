"""The tools as a client sees them: the SDK's own client, over the pipes of a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import pytest

anyio = pytest.importorskip("anyio", reason="the extra mcp is not installed")
pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, StdioServerParameters, stdio_client  # noqa: E402

CAMPAIGN = """
name: fed
problem: {name: gemm_gpu, m: 512, n: 512, k: 512}
target: {name: gpu-model}
driver: {name: random}
judge: {confirm: {finalists: 1, process_pairs: 2, pairs: 2}}
budget: {trials: 3}
"""
GOOD = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
# Seconds after which a test gives up; what is awaited takes a few of an idle machine.
LIMIT_S = 120


@pytest.fixture
def command(tmp_path):
    config = tmp_path / "fed.yaml"
    config.write_text(CAMPAIGN)
    out = str(tmp_path / "run")
    return ["-P", "-m", "kernelwright", "mcp", str(config), "--out", out]


@asynccontextmanager
async def connected(command, log):
    kept = {k: v for k, v in os.environ.items() if k in ("PYTHONPATH", "HOME", "PATH")}
    server = StdioServerParameters(command=sys.executable, args=command, env=kept)
    with anyio.fail_after(LIMIT_S):
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client


def with_client(command, tmp_path, work):
    async def main():
        with (tmp_path / "stderr").open("w") as log:
            async with connected(command, log) as client:
                return await work(client)

    return anyio.run(main)


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    (block,) = result.content
    if not result.is_error:
        assert json.loads(block.text) == result.structured_content
    return result


def test_a_client_searches_and_confirms(command, tmp_path):
    async def work(client):
        assert client.server_info.name == "kernelwright"
        assert "campaign" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"campaign", "check", "submit", "leaderboard", "finish"} <= set(tools)
        assert tools["check"].annotations.read_only_hint
        assert tools["submit"].input_schema["required"] == ["candidate"]
        said = (await call(client, "campaign")).structured_content
        assert said["standing"]["left"] == {"trials": 3}
        best = 0.0
        for bk in (16, 32, 64):
            done = (await call(client, "submit", candidate={**GOOD, "bk": bk})).structured_content
            assert done["judged"]
            best = max(best, done["trial"]["speedup"])
        done = (await call(client, "finish")).structured_content
        assert done["standing"]["state"] == "finished"
        assert done["rows"][0]["basis"] == "confirmed"

    with_client(command, tmp_path, work)
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "kernelwright", "show", str(tmp_path / "run"), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    summary = json.loads(shown.stdout)
    assert (summary["trials"], summary["finished"]) == (3, True)


def test_what_a_client_gets_wrong_is_an_error_it_can_read_and_the_server_goes_on(command, tmp_path):
    async def work(client):
        for tool, arguments in (
            ("submit", {}),
            ("submit", {"candidate": ["a", "list"]}),
            ("no_such_tool", {}),
            ("problem", {"name": "../../etc/passwd"}),
            ("verdicts", {"trials": [10**30]}),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert "expected" in result.content[0].text or "found" in result.content[0].text
        hostile = '"}}\n{"jsonrpc":"2.0","id":1,"result":{}}\n\x00\x1b[2J'
        answer = (await call(client, "submit", candidate=hostile)).structured_content
        assert answer["judged"] is False
        large = await call(client, "submit", candidate="x" * 300_000)
        assert "at most" in large.structured_content["faults"][0]
        assert (await call(client, "submit", candidate=GOOD)).structured_content["judged"]

    with_client(command, tmp_path, work)


def test_a_client_that_comes_back_finds_its_trials(command, tmp_path):
    async def first(client):
        await call(client, "submit", candidate=GOOD)

    async def second(client):
        again = (await call(client, "submit", candidate=GOOD)).structured_content
        assert (again["judged"], again["trial"]["trial"]) == (False, 0)
        assert again["standing"]["left"] == {"trials": 2}

    with_client(command, tmp_path, first)
    with_client(command, tmp_path, second)


def test_a_campaign_that_is_refused_ends_the_server_with_a_reason(tmp_path):
    run = subprocess.run(
        [sys.executable, "-P", "-m", "kernelwright", "mcp", str(tmp_path / "none.yaml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert "none.yaml" in run.stderr


def test_bytes_that_are_no_messages_do_not_stop_the_server(command):
    """Clients as strangers may write them: what is no message gets no answer, the rest does."""

    def message(number, method, **params):
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def submit(number, candidate):
        start = message(number, "tools/call", name="submit", arguments={"candidate": 0})
        return start.replace('"candidate": 0', f'"candidate": {candidate}')

    client = {"name": "raw\x1b[2J", "version": "0"}
    sent = [
        message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "{{{",
        "\udcff\udcfe\x00",
        submit(2, '"\\ud800 x"'),
        submit(3, '{"bm": NaN}'),
        submit(4, "[" * 100_000),
        submit(5, '{"bm": ' + "9" * 6000 + "}"),
        message(6, "tools/call", name="check", arguments={"candidate": GOOD}),
    ]
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        watchdog = threading.Timer(LIMIT_S, server.kill)
        watchdog.start()
        server.stdin.write("\n".join([*sent, ""]).encode("utf-8", "surrogateescape"))
        server.stdin.flush()
        answers = {}
        while 6 not in answers:
            answer = json.loads(server.stdout.readline())
            answers[answer.get("id")] = answer
        server.stdin.close()
        server.stdout.read()
        assert server.wait() == 0
        watchdog.cancel()
    assert answers[6]["result"]["structuredContent"]["legal"]


def test_looking_does_not_wait_for_calls_that_wait_for_the_judge(tmp_path):
    from kernelwright.configs.tools.protocol import MOST_CALLS, make_server
    from kernelwright.configs.tools.session import Session

    config = tmp_path / "fed.yaml"
    config.write_text(CAMPAIGN)
    session = Session(config, tmp_path / "run")
    busy = threading.Event()
    session._pool.submit(busy.wait)

    async def main():
        with anyio.fail_after(LIMIT_S):
            async with Client(make_server(session)) as client, anyio.create_task_group() as group:
                for n in range(MOST_CALLS + 4):
                    knobs = {**GOOD, "group_m": 2**n, "no": n}
                    group.start_soon(client.call_tool, "submit", {"candidate": knobs, "wait": 60})
                try:
                    await anyio.wait_all_tasks_blocked()
                    looked = await call(client, "leaderboard")
                    assert looked.structured_content["rows"] == []
                finally:
                    busy.set()

    try:
        anyio.run(main)
    finally:
        busy.set()
        session.close()


def test_what_is_no_candidate_waits_no_longer_than_it_was_told(tmp_path):
    from kernelwright.configs.tools.desk import Desk
    from kernelwright.configs.tools.session import Session

    config = tmp_path / "fed.yaml"
    config.write_text(CAMPAIGN)
    session = Session(config, tmp_path / "run")
    busy = threading.Event()
    session._pool.submit(busy.wait)
    try:
        answer = Desk(session).submit(candidate="no JSON", wait=0)
        assert answer["judged"] is False
    finally:
        busy.set()
        session.close()
