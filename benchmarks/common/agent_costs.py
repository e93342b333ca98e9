"""Rows of the table of agents: CPU time and record of a proposal."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any

from table import Row

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.chat import ChatRequest, Completion
from kernelwright.configs.api import plan_of, run
from kernelwright.configs.build import build
from kernelwright.configs.load import Chosen, read_config
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.evaluators import gpu_model
from kernelwright.search.campaign import Campaign
from kernelwright.search.driver import Driver
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.trial import Trial

PROPOSALS = (100, 1_000, 10_000)
MOST_MS = 1.0
MOST_KIB = 4.0
RECORDED_TRIALS = 256
# A space of more than 10,000 members.
LARGE = {
    "problem": {"name": "gemm_gpu", "split_k": True},
    "target": {"name": "gpu-model", "device": "h200"},
}
MANY = PROPOSALS[-1]
# An agent, its options, and for how many proposals. What a hybrid takes later is its classical
# driver's; `random` takes next to nothing.
CASES: tuple[tuple[str, str, Mapping[str, Any], int], ...] = (
    *((name, name, {}, MANY) for name in AGENT_DRIVERS if name != "hybrid"),
    ("hybrid", "hybrid", {}, 1_000),
    ("hybrid with polish: random", "hybrid", {"polish": "random"}, MANY),
)
SESSION = ("list", "estimate", "submit")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a meter showed."""

    seconds: float
    writing: float
    calls: int


@dataclass(slots=True)
class Meter:
    """CPU seconds of whoever proposes and records, less those of the model inside that; of them
    those of writing; and calls of the model. ``marks`` has all of it at `PROPOSALS`.
    """

    seconds: float = 0.0
    calls: int = 0
    proposals: int = 0
    writing: float = 0.0
    marks: dict[int, Mark] = field(default_factory=dict)
    _depth: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what happens inside, once where one such part is inside another."""
        self._depth += 1
        began = process_time()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += process_time() - began

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Do not count what happens inside."""
        began = process_time()
        try:
            yield
        finally:
            self.seconds -= process_time() - began


class Cheap:
    """A model that answers at once: programs that nobody has proposed, or what else is wanted."""

    model, priced = "cheap", True
    missing: tuple[str, ...] = ()

    def __init__(self, space: KnobSpace, meter: Meter) -> None:
        members = [space.candidate(int(index)).knobs for index in space.valid]
        random.Random(0).shuffle(members)
        self._programs = iter(members)
        self._meter, self._steps = meter, 0

    def complete(self, request: ChatRequest) -> Completion:
        """The answer; what it takes is not the driver's."""
        with self._meter.halted():
            self._meter.calls += 1
            return Completion(self._text(request), "stop", self.model, "id", None, 1000, 30)

    def _text(self, request: ChatRequest) -> str:
        mark = re.findall(r"begins with ```(\w+)", request.messages[-1][1])[-1]
        if mark == "plan":
            said = "1. Larger tiles.\n2. Fewer stages.\n3. More warps.\n4. Another order."
        elif mark == "review":
            said = "ok"
        elif mark == "action":
            tool = SESSION[self._steps % len(SESSION)]
            self._steps += 1
            given = {"program": json.dumps(next(self._programs))} if tool == "submit" else {}
            said = json.dumps({"tool": tool, "arguments": given})
        else:
            said = json.dumps(next(self._programs))
        return f"I change what limits it most.\n\n```{mark}\n{said}\n```\n"


class Metered:
    """A driver whose CPU time is counted."""

    def __init__(self, driver: Driver, meter: Meter) -> None:
        self._driver, self._meter = driver, meter

    @property
    def stopped(self) -> str | None:
        """The driver's."""
        return self._driver.stopped

    def ask(self, n: int) -> Sequence[Proposal]:
        """The driver's proposals."""
        with self._meter.running():
            found = self._driver.ask(n)
        self._meter.proposals += len(found)
        return found

    def tell(self, trials: Sequence[Trial]) -> None:
        """Tell the driver; then note where it stands."""
        meter = self._meter
        with meter.running():
            self._driver.tell(trials)
        for wanted in PROPOSALS:
            if meter.proposals >= wanted:
                mark = Mark(meter.seconds, meter.writing, meter.calls)
                meter.marks.setdefault(wanted, mark)


class MeteredStore(SqliteStore):
    """A store whose writing is counted."""

    def __init__(self, path: Path, meter: Meter) -> None:
        super().__init__(path)
        self._meter = meter

    def record(self, *given: Any, **named: Any) -> None:
        """Record, and count what that takes."""
        began = process_time()
        with self._meter.running():
            super().record(*given, **named)
        self._meter.writing += process_time() - began


def metered(agent: str, trials: int, options: Mapping[str, Any]) -> Meter:
    """What a campaign of an agent with a cheap model takes, evaluation left out."""
    # What earlier campaigns of this process have learned of the target, one of its own has not.
    gpu_model._known_times.cache_clear()
    meter = Meter()
    config = LARGE | {"name": agent, "driver": {"name": agent, **options}, "batch": 4}
    config |= {"agents": {"backend": {"name": "mock"}}, "budget": {"trials": trials}}
    campaign = read_config(config)
    model = Cheap(plan_of(config).space, meter)
    chosen = Chosen("cheap", lambda: model, {}, campaign.backend.plain)
    plan = build(replace(campaign, backend=chosen)).plan
    timed = replace(plan, make_driver=lambda journal: Metered(plan.make_driver(journal), meter))
    with (
        tempfile.TemporaryDirectory() as folder,
        MeteredStore(Path(folder) / DATABASE, meter) as store,
    ):
        Campaign(timed, store).run()
    return meter


def cpu() -> Iterator[Row]:
    """CPU time of a proposal outside model and evaluation, early and late in a long search."""
    for name, agent, options, most in CASES:
        meter = metered(agent, most, options)
        counts = [count for count in PROPOSALS if count <= most]
        each = [1e3 * meter.marks[count].seconds / count for count in counts]
        last = meter.marks[most]
        said = f"{', '.join(f'{ms:.2f}' for ms in each)} ms, "
        said += f"{1e3 * last.writing / most:.2f} of the last for the record"
        calls = last.calls / most
        if calls > 1:
            said += f"; {calls:.2f} calls a proposal, {each[-1] / calls:.2f} ms a call"
        said = f"at {', '.join(f'{count:,}' for count in counts)} {said}"
        target = f"at most {MOST_MS:g} ms at {most:,}"
        yield f"CPU of a proposal, {name}", target, said, each[-1] <= MOST_MS


def log() -> Iterator[Row]:
    """What a trial takes of a run's folder, all events included."""
    for agent in AGENT_DRIVERS:
        with tempfile.TemporaryDirectory() as folder:
            sets = ["batch=4", f"budget.trials={RECORDED_TRIALS}"]
            told = run(f"gemm_model_{agent}", Path(folder) / "run", overrides=sets)
            size = sum(path.stat().st_size for path in (Path(folder) / "run").iterdir())
        kib = size / told["trials"] / 1024
        said = f"{kib:.2f} KiB, {told['trials']} trials"
        yield f"record of a proposal, {agent}", f"at most {MOST_KIB:g} KiB", said, kib <= MOST_KIB


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {"cpu": cpu, "log": log}
