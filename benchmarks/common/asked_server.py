"""A server of the simulated model in a process of its own, and campaigns that ask it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runs import Config, campaign

SERVER = Path(__file__).with_name("counting_server.py")


@dataclass
class Endpoint:
    """A server in a process of its own, and what it was asked."""

    url: str
    log: Path

    def asked(self) -> list[str]:
        """All questions so far, by their keys."""
        return self.log.read_text().split() if self.log.exists() else []

    def backend(self, model: str = "mock") -> Config:
        """The backend that asks it."""
        return {"name": "openai", "model": model, "base_url": self.url, "retries": 0}


@contextmanager
def endpoint(folder: Path, delay_s: float = 0.0) -> Iterator[Endpoint]:
    """A server whose answers take a time at least. What clients note of it goes to the folder."""
    log = folder / "asked"
    os.environ["XDG_CACHE_HOME"] = str(folder)
    command = [sys.executable, "-P", str(SERVER), str(log), str(delay_s)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield Endpoint(server.stdout.readline().strip(), log)
        server.stdin.close()


def of_agent(agent: str, server: Endpoint, space: Config, **keys: Any) -> Config:
    """A campaign of an agent that asks the server; the models of an ensemble have their names."""
    config = campaign(agent, space, server.backend(), 7, **{"budget": {"trials": 16}, **keys})
    if agent == "ensemble":
        inner = {name: server.backend(name) for name in ("good", "poor")}
        config["agents"]["backend"] |= {"backends": inner}
    return config
