"""Where agents are tried out: small spaces in each language, a record in memory, judges that cost
nothing, and a clock whose sleepers do not wait.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.chat import ChatModel
from kernelwright.agents.server import ChatServer
from kernelwright.configs.resolve import resolve
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    Measurement,
    Problem,
    Proposal,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.driver import Driver
from kernelwright.search.store import StoreJournal
from kernelwright.search.trial import Event, Trial

AGENTS = tuple(AGENT_DRIVERS)


class VirtualClock:
    """Time that passes when somebody waits."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Seconds that were slept."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let them pass."""
        self._now += seconds


@dataclass(frozen=True)
class World:
    """A space with its problem."""

    space: Any
    problem: Problem

    def search(self, agent: str, backend: ChatModel, *, seed: int = 0, **options: Any) -> Search:
        """A search by an agent, not begun yet."""
        found = Search(batch=options.pop("batch", 2))
        found.driver = resolve(AGENT_DRIVERS, agent)(
            self.space,
            seed=seed,
            batch=found.batch,
            problem=self.problem,
            backend=backend,
            prompt="refine",
            journal=StoreJournal((), found.events.append),
            **options,
        )
        return found


@dataclass
class Search:
    """An agent, its record, and a judge of made-up verdicts: one in eight candidates fails."""

    batch: int
    events: list[Event] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    driver: Driver = field(init=False)

    def step(self) -> list[Proposal]:
        """Ask the driver once, and tell it what it proposed."""
        proposals = list(self.driver.ask(self.batch))
        told = [_judged(len(self.trials) + i, p) for i, p in enumerate(proposals)]
        self.trials += told
        self.driver.tell(told)
        return proposals


def _judged(number: int, proposal: Proposal) -> Trial:
    candidate = proposal.candidate
    height = _height(candidate)
    verdict = Verdict(Status.BUILD_ERROR, "made_up")
    if height is not None:
        times = Unpaired((1.0,), (2.0**height,), reference_exact=True)
        where = ("made up", CacheState.COLD, Evidence.MODELLED, "made up")
        measured = Measurement("made up", Role.BASELINE, "made up", times, *where)
        verdict = Verdict(Status.OK, measurements=(measured,))
    screens = ((Stage.SCREEN, verdict),)
    return Trial(number, candidate, screens, height, proposal.proposer, proposal.parents, 0, 0)


def _height(candidate: Candidate) -> float | None:
    """An objective between -1 and 1 that is a function of the candidate."""
    drawn = int(candidate.key[:8], 16)
    return None if drawn % 8 == 0 else drawn / 2**31 - 1


@cache
def world(name: str) -> World:
    """A world by its name: knobs, schedule, or source."""
    if name == "knobs":
        gemm = gemm_gpu()
        rules = GpuModel(gemm, seed=0).constraints
        return World(KnobSpace(gemm.knobs, rules, default=gemm.unscheduled), gemm)
    if name == "schedule":
        small = matmul(m=64, n=64, k=64)
        return World(ScheduleSpace(small.definition(small.workloads[0])), small)
    rows = softmax(rows=16, cols=64)
    return World(SourceSpace(rows.plain_c, entry=rows.name), rows)


@contextmanager
def served(server: ChatServer) -> Iterator[ChatServer]:
    """A server at work."""
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
