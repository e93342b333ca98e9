"""Campaigns of every agent, for the rows of the table of agents about records."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from table import Row

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from crash_child import tables as tables

from kernelwright.agents import AGENT_DRIVERS

Config = dict[str, Any]
IMAGINED = Path(__file__).with_name("imagined.py")
KNOBS: Config = {
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model", "noise": {"lognormal": 0.02}},
}
SOURCE: Config = {
    "problem": {"name": "row_sum"},
    "space": {"kind": "source"},
    "target": {"name": f"{IMAGINED}:Imagined"},
}
SPACES = {"knobs": KNOBS, "C": SOURCE}
MOCKS: tuple[dict[str, Any], ...] = (
    {"name": "mock", "faults": 0.15},
    {"name": "mock", "persona": "frontier"},
)
# Options that let an agent make several calls a proposal in short runs.
OPTIONS: dict[str, dict[str, Any]] = {
    "evolve": {"crossover": 0.5, "instructions": 2},
    "hybrid": {"seeds": 6},
    "tool_loop": {"steps": 6, "measurements": 2},
}


def ensemble_of(backend: Mapping[str, Any]) -> dict[str, Any]:
    """An ensemble of a backend and the same one with less skill."""
    return {
        "name": "ensemble",
        "backends": {"good": {**backend}, "poor": {**backend, "skill": 0.2}},
    }


def agents() -> tuple[str, ...]:
    """Every driver that asks a model, and an ensemble of models."""
    return (*AGENT_DRIVERS, "ensemble")


def campaign(
    agent: str, space: Mapping[str, Any], backend: Mapping[str, Any], seed: int, **keys: Any
) -> Config:
    """A campaign of an agent; ``ensemble`` is the agent ``llm`` with one."""
    name = "llm" if agent == "ensemble" else agent
    asked = ensemble_of(backend) if agent == "ensemble" else dict(backend)
    return {
        "name": agent,
        **space,
        "driver": {"name": name, **OPTIONS.get(name, {})},
        "agents": {"backend": asked},
        "budget": {"trials": 24},
        "batch": 4,
        "seed": seed,
        **keys,
    }


def share(name: str, good: int, total: int, found: str, bad: list[str]) -> Row:
    """A row that wants all of a number of runs."""
    got = f"{good} of {total} {found}" + (f"; not {', '.join(bad[:8])}" if bad else "")
    return name, "all", got, good == total > 0
