"""Rows of the table of agents: what a budget lets pass, and what is said before it is spent."""

from __future__ import annotations

import contextlib
import io
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import yaml
from agent_runs import SPACES, Config, agents, campaign, share
from table import Row

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.wrappers import Budgeted
from kernelwright.agents.chat import BudgetSpentError, ChatRequest, Completion
from kernelwright.agents.hearing import Notices
from kernelwright.agents.ledger import Ledger
from kernelwright.cli import app
from kernelwright.configs import api
from kernelwright.search.campaign import Campaign
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL, Event, event

DEAR: Config = {"name": "mock", "faults": 0.15, "usd_per_million": 10.0}
OPEN: Config = {"name": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
# Limits that every agent reaches, and what one call has of them.
LIMITS: dict[str, tuple[float, Callable[[Event], float]]] = {
    "usd": (0.04, lambda call: call.usd),
    "tokens": (4000, lambda call: call.tokens),
    "calls": (5, lambda call: 1),
}
TRIALS, SECONDS, CALL_S, SEEDS = 13, 6.5, 1.0, (1, 2)
Complete = Callable[[Mock, ChatRequest], Completion]


def budgets() -> Iterator[Row]:
    """Every agent under every limit."""
    for name in LIMITS:
        yield overshoot(f"{name}: without its last call a run is below its limit", within(name))
    title = "trials: not one more than the limit"
    yield overshoot(title, lambda config: tried(config) == TRIALS)
    yield overshoot("seconds: no call begins after the limit", in_time)
    yield at_the_same_time()
    yield overshoot("the plan stands on the screen before the first call", announced, seeds=(1,))
    title = "a model without prices under a limit of USD is refused, exit code 2"
    yield overshoot(title, refused, seeds=(1,))


def overshoot(title: str, is_kept: Callable[[Config], bool], seeds: tuple[int, ...] = SEEDS) -> Row:
    """The row of a limit over all agents, spaces and seeds."""
    bad, total = [], 0
    for space in SPACES:
        for agent in agents():
            for seed in seeds:
                total += 1
                if not is_kept(campaign(agent, SPACES[space], DEAR, seed)):
                    bad.append(f"{agent} {space} {seed}")
    return share(title, total - len(bad), total, "kept", bad)


def within(name: str) -> Callable[[Config], bool]:
    """Whether a run reaches a limit with its last call, and not before."""
    limit, cost = LIMITS[name]

    def is_kept(config: Config) -> bool:
        store = MemoryStore()
        plan = api.plan_of(config | {"budget": {name: limit, "trials": 400}}).plan
        rule = Campaign(plan, store).run().rule
        costs = [cost(e) for e in store.events() if e.kind == MODEL_CALL]
        return rule == name and sum(costs[:-1]) < limit <= sum(costs)

    return is_kept


def tried(config: Config) -> int:
    """How many trials a run makes that may make `TRIALS`."""
    store = MemoryStore()
    Campaign(api.plan_of(config | {"budget": {"trials": TRIALS}}).plan, store).run()
    return len(store.trials())


def in_time(config: Config) -> bool:
    """Whether a run whose calls take a second each is over by the end of the call that is on its
    way when its time is.
    """
    now = 0.0

    def slow(complete: Complete, model: Mock, request: ChatRequest) -> Completion:
        nonlocal now
        now += CALL_S
        return complete(model, request)

    store = MemoryStore()
    plan = api.plan_of(config | {"budget": {"seconds": SECONDS, "trials": 400}}).plan
    with watched(slow):
        rule = Campaign(plan, store, clock=lambda: now).run().rule
    # A hybrid in a space of knobs asks no model after its seeds, and a clock stands still that only
    # calls move.
    is_over = rule == "seconds" or (config["name"] == "hybrid" and rule == "trials")
    return is_over and now < SECONDS + CALL_S


@contextlib.contextmanager
def watched(around: Callable[[Complete, Mock, ChatRequest], Completion]) -> Iterator[None]:
    """Put something around every call of the simulated model."""
    complete = Mock.complete

    def call(model: Mock, request: ChatRequest) -> Completion:
        return around(complete, model, request)

    with mock.patch.object(Mock, "complete", call):
        yield


def announced(config: Config) -> bool:
    """Whether the command line has said what the budget buys when the model is asked first."""
    said: list[str] = []
    screen = io.StringIO()

    def look(complete: Complete, model: Mock, request: ChatRequest) -> Completion:
        said.append(screen.getvalue())
        return complete(model, request)

    with watched(look), contextlib.redirect_stdout(screen):
        command(config | {"budget": {"usd": 0.02, "trials": 400}})
    return "the budget buys about" in said[0]


def refused(config: Config) -> bool:
    """Whether the command line refuses a model without prices."""
    backend = OPEN
    if config["name"] == "ensemble":
        backend = {"name": "ensemble", "backends": {"a": OPEN, "b": DEAR}}
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = command(config | {"agents": {"backend": backend}, "budget": {"usd": 1.0}})
    return code == 2 and "no price of" in " ".join(said.getvalue().split())


def command(config: Config) -> int:
    """The exit code of ``kernelwright run``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "campaign.yaml"
        path.write_text(yaml.safe_dump(config))
        arguments = ["run", str(path), "--out", f"{folder}/run"]
        # Without a value it has come to its end.
        return int(app(arguments, standalone_mode=False) or 0)


def at_the_same_time(workers: int = 4, calls: int = 200) -> Row:
    """Calls of several threads under one limit."""
    limit, spent, lock = 0.5, Spent(), threading.Lock()
    ledger = Ledger(Budget(usd=limit))
    backend = Budgeted(Mock(seed=1, usd_per_million=10.0), ledger, Notices())
    dearest = 0.0

    def work(worker: int) -> None:
        nonlocal spent, dearest
        for number in range(calls):
            request = ChatRequest(
                "mock", (("user", "x" * 4000),), 1000, 0.5, worker * calls + number
            )
            try:
                answer = backend.complete(request)
            except BudgetSpentError:
                return
            with lock:
                spent += Spent(1, answer.tokens, Spent.picodollars(answer.usd))
                dearest = max(dearest, answer.usd)
            made = event(MODEL_CALL, worker, number, key=request.key)
            ledger.hear(Event(made.kind, worker, number, made.payload, answer.tokens, answer.usd))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    name = f"{workers} calls at the same time under a limit of {limit} USD"
    got = f"{spent.usd:.4f} USD in {spent.calls} calls, the dearest {dearest:.4f}"
    return name, "less than one call above", got, spent.usd < limit + dearest
