"""Proposers that talk: chat backends, and drivers that ask them.

`BACKENDS` and `AGENT_DRIVERS` are tables of dotted paths: nothing here imports a client before
somebody talks.
"""

from __future__ import annotations

BACKENDS: dict[str, str] = {
    "openai": "kernelwright.agents.backends.openai:OpenAI",
    "mock": "kernelwright.agents.backends.mock:Mock",
    "replay": "kernelwright.agents.backends.replay:Replay",
    "human": "kernelwright.agents.backends.human:Human",
    "ensemble": "kernelwright.agents.backends.ensemble:Ensemble",
}
AGENT_DRIVERS: dict[str, str] = {
    "llm": "kernelwright.agents.llm:LlmDriver",
    "best_of_n": "kernelwright.agents.drivers.best_of_n:BestOfN",
    "sequential": "kernelwright.agents.drivers.sequential:Sequential",
    "refine": "kernelwright.agents.drivers.refine:Refine",
    "evolve": "kernelwright.agents.drivers.evolve:Evolve",
    "tool_loop": "kernelwright.agents.drivers.tool_loop:ToolLoop",
    "team": "kernelwright.agents.drivers.team:Team",
    "hybrid": "kernelwright.agents.drivers.hybrid:Hybrid",
}
