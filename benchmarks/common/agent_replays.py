"""Rows of the table of agents: finished runs again, without a network."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from agent_equal import played
from agent_runs import SPACES, Config, agents, share, tables
from asked_server import endpoint, of_agent
from table import Row

from kernelwright.agents.backends.openai import OpenAI
from kernelwright.configs import api
from kernelwright.search.store import DATABASE


def replay() -> Iterator[Row]:
    """Each agent's run, made with a server, made again without any."""
    runs: list[tuple[str, Config, Path]] = []
    with tempfile.TemporaryDirectory() as name:
        with endpoint(Path(name)) as server:
            for space in SPACES:
                for agent in agents():
                    config = of_agent(agent, server, SPACES[space])
                    out = Path(name) / f"{agent}-{space}"
                    api.run(config, out)
                    runs.append((out.name, config, out))
            asked = len(server.asked())
        attempts: list[object] = []
        with offline(attempts):
            again = [run for run, config, out in runs if not is_same_again(config, out)]
            anew = [run for run, config, out in runs if not is_same_anew(config, out)]
    total = len(runs)
    found = f"equal ({asked} calls when they were made)"
    yield share("a finished run gone through again", total - len(again), total, found, again)
    title = "a finished run played by the backend replay"
    yield share(title, total - len(anew), total, "equal", anew)
    got = f"{len(attempts)} in {2 * total} runs"
    yield "calls and connections tried, the server gone", "0", got, not attempts


@contextmanager
def offline(attempts: list[object]) -> Iterator[None]:
    """Refuse, and keep, every socket and every call of the client."""

    def refuse(*given: Any, **named: Any) -> NoReturn:
        attempts.append(given)
        raise OSError("there is no network")

    with (
        mock.patch.object(socket, "socket", refuse),
        mock.patch.object(socket, "create_connection", refuse),
        mock.patch.object(OpenAI, "complete", refuse),
    ):
        yield


def is_same_again(config: Config, out: Path) -> bool:
    """Whether the same command goes through the whole record to the same end, once that forgot that
    it is finished.
    """
    before, copy = tables(out), out.with_name(f"{out.name}-again")
    shutil.copytree(out, copy)
    with sqlite3.connect(copy / DATABASE) as store:
        gone = store.execute("DELETE FROM events WHERE kind = 'finished'").rowcount
    store.close()
    api.run(config, copy)
    return gone == 1 and tables(copy) == before


def is_same_anew(config: Config, out: Path) -> bool:
    """Whether the backend ``replay`` makes the same record in another folder."""
    copy = out.with_name(f"{out.name}-anew")
    api.run(played(config, out), copy)
    return tables(copy) == tables(out)
