"""Limits of money, tokens and calls: exceeded by the call on its way at most, and the same however
a campaign was cut into pieces.
"""

from __future__ import annotations

import json
import threading

import pytest

from kernelwright.agents.backends.wrappers import Budgeted
from kernelwright.agents.chat import BackendError, BudgetSpentError, ChatRequest, Completion, price
from kernelwright.agents.ledger import Ledger
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.display.plans import check_text
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent, limit_reached
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import MODEL_CALL, event

DEAR = {"name": "mock", "skill": 0.7, "faults": 0.2, "usd_per_million": 10.0}


def campaign(budget, backend=DEAR, batch=8, **agents):
    return {
        "name": "paid",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": backend, **agents},
        "budget": budget,
        "batch": batch,
        "seed": 2,
    }


def calls_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        return [e for e in store.events() if e.kind == MODEL_CALL]


def record_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        ends = ("stopped", "finished", "extended", "raced")
        events = [e for e in store.events() if e.kind not in ends]
        return [t.candidate for t in store.trials()], events


LIMITS = [
    ({"usd": 0.05}, "usd", lambda calls: sum(e.usd for e in calls)),
    ({"tokens": 5000}, "tokens", lambda calls: sum(e.tokens for e in calls)),
    ({"calls": 11}, "calls", len),
]


@pytest.mark.parametrize(("budget", "rule", "spent"), LIMITS, ids=["usd", "tokens", "calls"])
@pytest.mark.parametrize("batch", [1, 8])
def test_a_limit_is_exceeded_by_the_last_call_at_most(tmp_path, budget, rule, spent, batch):
    summary = api.run(campaign(budget, batch=batch), tmp_path / "run")
    calls = calls_of(tmp_path / "run")
    limit = budget[rule]
    assert spent(calls) >= limit
    assert spent(calls[:-1]) < limit
    assert summary["stop"]["rule"] == rule
    assert summary["finished"]
    assert summary["best"]["status"] in ("win", "tie", "loss")
    assert summary["usd"] == pytest.approx(sum(e.usd for e in calls))


@pytest.mark.parametrize(("budget", "rule", "spent"), LIMITS, ids=["usd", "tokens", "calls"])
def test_a_larger_limit_goes_on_as_if_it_had_been_so_from_the_start(tmp_path, budget, rule, spent):
    del spent
    whole = {rule: 3 * budget[rule]}
    api.run(campaign(whole), tmp_path / "whole")
    for share in (1, 2, 3):
        api.run(campaign({rule: share * budget[rule]}), tmp_path / "parts")
    assert record_of(tmp_path / "parts") == record_of(tmp_path / "whole")


def test_a_finished_campaign_makes_no_call(tmp_path, monkeypatch):
    from kernelwright.agents.backends.mock import Mock

    api.run(campaign({"usd": 0.05}), tmp_path / "run")
    before = record_of(tmp_path / "run")

    def refuse(self, request):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(Mock, "complete", refuse)
    api.run(campaign({"usd": 0.05}), tmp_path / "run")
    assert record_of(tmp_path / "run") == before


def test_prices_of_the_campaign_go_before_the_backend_s(tmp_path):
    prices = {"mock": {"prompt": 1.0, "completion": 2.0, "cached": 0.5}}
    summary = api.run(campaign({"calls": 3}, prices=prices), tmp_path / "run")
    tokens = [e.data["completion"] for e in calls_of(tmp_path / "run")]
    expected = sum(t["prompt_tokens"] + 2 * t["completion_tokens"] for t in tokens) / 1e6
    assert summary["usd"] == pytest.approx(expected)
    resolved = api.plan_of(tmp_path / "run" / "config.yaml").resolved
    assert resolved["agents"]["prices"] == prices


OPEN = {"name": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("backend", "agents", "priced"),
    [
        (OPEN, {}, False),
        (OPEN, {"prices": {"other": {"prompt": 1.0, "completion": 1.0}}}, False),
        (OPEN, {"prices": {"m": {"prompt": 1.0, "completion": 1.0}}}, True),
        ({**OPEN, "usd_per_million": {"prompt": 1.0, "completion": 1.0}}, {}, True),
        ({"name": "ensemble", "backends": {"a": OPEN, "b": DEAR}}, {}, False),
        (
            {"name": "ensemble", "backends": {"a": OPEN, "b": DEAR}},
            {"prices": {"m": {"prompt": 1.0, "completion": 1.0}}},
            True,
        ),
    ],
)
def test_a_model_without_prices_does_not_start_under_a_limit_of_money(backend, agents, priced):
    config = campaign({"usd": 1.0}, backend=backend, **agents)
    if priced:
        api.plan_of(config)
        return
    with pytest.raises(ConfigError, match="no price of") as caught:
        api.plan_of(config)
    assert caught.value.path == "budget.usd"
    api.plan_of({**config, "budget": {"tokens": 1}})


@pytest.mark.parametrize(
    ("agents", "path"),
    [
        ({"prices": {"m": {"prompt": 1.0}}}, "agents.prices.m"),
        ({"prices": {"m": {"prompt": 1.0, "completion": -1.0}}}, "agents.prices.m.completion"),
        ({"prices": {"m": {"promt": 1.0, "completion": 1.0}}}, "agents.prices.m.promt"),
        ({"prices": 3}, "agents.prices"),
    ],
)
def test_prices_that_are_none_are_refused(agents, path):
    with pytest.raises(ConfigError) as caught:
        api.check(campaign({"usd": 1.0}, **agents))
    assert caught.value.path == path


@pytest.mark.parametrize("usd", [0, -1.0, "1", float("nan"), float("inf")])
def test_a_limit_of_money_is_a_sum(usd):
    with pytest.raises(ConfigError) as caught:
        api.check(campaign({"usd": usd}))
    assert caught.value.path == "budget.usd"


def test_what_the_budget_buys_is_said_before_the_start_and_is_about_right(tmp_path):
    config, said = campaign({"usd": 0.3}), []
    plan = api.check(config)
    summary = api.run(config, tmp_path / "run", announce=said.append)
    estimated = plan["outlay"]["proposals"]
    assert plan["candidates"] == estimated
    assert said == [plan["outlay"]["says"]]
    assert f"buys about {estimated:,} proposals" in said[0]
    assert said[0] in check_text(plan)
    assert 0.5 < summary["trials"] / estimated < 2
    said.clear()
    api.run(config, tmp_path / "run", announce=said.append)
    assert said == []


def test_a_budget_in_seconds_asks_no_model_for_its_pace(monkeypatch):
    from kernelwright.agents.backends.mock import Mock

    def refuse(self, request):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(Mock, "complete", refuse)
    plan = api.check(campaign({"seconds": 5.0}))
    assert plan["outlay"]["proposals"] is None
    assert "a proposal takes about" in check_text(plan)


REQUEST = ChatRequest("m", (("user", "a" * 40),), 90, 0.5, 7)
PRICES = {"prompt": 1e6, "completion": 1e6}


def call(request, tokens=100, usd=0.0):
    from dataclasses import replace

    made = event(MODEL_CALL, 1, request.seed, key=request.key)
    return replace(made, tokens=tokens, usd=usd)


def asked(number):
    return ChatRequest("m", (("user", "a" * 40),), 90, 0.5, number)


def test_calls_at_the_same_time_are_counted_at_their_most():
    ledger = Ledger(Budget(tokens=250))
    for number in range(3):  # each may come to 100 tokens
        ledger.reserve(asked(number), PRICES)
    with pytest.raises(BudgetSpentError, match="tokens were spent"):
        ledger.reserve(asked(3), PRICES)
    ledger.hear(call(asked(0), tokens=20))
    ledger.reserve(asked(3), PRICES)  # 20 and 2 x 100
    ledger.release(asked(1))
    ledger.reserve(asked(4), PRICES)
    with pytest.raises(BudgetSpentError):
        ledger.reserve(asked(5), PRICES)


def test_one_request_on_its_way_twice_is_counted_twice():
    ledger = Ledger(Budget(calls=2))
    for _ in range(2):
        ledger.reserve(REQUEST, PRICES)
    with pytest.raises(BudgetSpentError, match="2 calls"):
        ledger.reserve(REQUEST, PRICES)
    ledger.release(REQUEST)
    ledger.reserve(REQUEST, PRICES)
    ledger.hear(call(REQUEST))
    with pytest.raises(BudgetSpentError):
        ledger.reserve(REQUEST, PRICES)


def test_threads_exceed_a_limit_by_one_call_at_most():
    budget, lock, seen = Budget(usd=1000.0), threading.Lock(), []
    ledger = Ledger(budget)

    class Model:
        model, priced, missing, usd_per_million = "m", True, (), PRICES

        def complete(self, request):
            return Completion("x", "stop", "m", "i", prompt_tokens=10, completion_tokens=40)

    backend = Budgeted(Model(), ledger)

    def work(first):
        for number in range(first, first + 20):
            request = asked(number)
            try:
                answer = backend.complete(request)
            except BudgetSpentError:
                return
            usd = price(answer.prompt_tokens, answer.completion_tokens, PRICES)
            with lock:
                seen.append(usd)
            ledger.hear(call(request, usd=usd))

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Three others may be on their way, each of which is counted as 100 USD.
    assert 1000 - 4 * 100 <= sum(seen) < 1000 + 50


@pytest.mark.parametrize(
    ("budget", "price", "is_refused"),
    [
        ({"usd": 1.0}, 0.0, True),
        ({"usd": 1.0}, 1.0, False),
        ({"usd": 1.0, "calls": 9}, 0.0, False),
        ({"usd": 1.0, "trials": 9}, 0.0, False),
    ],
)
def test_a_limit_that_is_never_reached_needs_another(budget, price, is_refused):
    made = campaign(budget, prices={"mock": {"prompt": price, "completion": price}})
    if is_refused:
        with pytest.raises(ConfigError, match="prices above 0, or another limit") as caught:
            api.check(made)
        assert caught.value.path == "budget.usd"
        made["stop"] = {"plateau": 5}
    api.check(made)


def test_a_call_that_a_driver_records_in_its_own_words_is_counted():
    ledger = Ledger(Budget(calls=1))
    ledger.hear(event(MODEL_CALL, 1, 0, answer="of its own"))
    with pytest.raises(BudgetSpentError, match="1 calls"):
        ledger.reserve(ChatRequest("m", (("user", "q"),), 16, 0.0, 0), None)


def test_a_call_that_fails_sets_nothing_aside():
    ledger = Ledger(Budget(calls=1))

    class Down:
        model, priced, missing = "m", True, ()

        def complete(self, request):
            raise BackendError("permanent", "401")

    for _ in range(3):
        with pytest.raises(BackendError, match="401"):
            Budgeted(Down(), ledger).complete(REQUEST)


def test_sums_of_money_do_not_depend_on_their_order():
    parts = [Spent(1, 1, Spent.picodollars(x)) for x in (0.1, 0.2, 0.3, 1e-7) * 50]
    assert sum(parts, Spent()) == sum(parts[::-1], Spent())
    assert limit_reached(Budget(usd=30.0), Spent(1, 1, Spent.picodollars(30.0)))[0] == "usd"
    assert limit_reached(Budget(usd=30.0), Spent(1, 1, Spent.picodollars(29.9999))) is None


def test_cached_tokens_have_their_own_price():
    prices = {"prompt": 1e6, "completion": 2e6, "cached": 1e5}
    assert price(10, 5, prices, 4) == pytest.approx(6 + 0.4 + 10)
    assert price(10, 5, {"prompt": 1e6, "completion": 2e6}, 4) == pytest.approx(20)
    assert price(10, 5, None, 4) == 0


def test_a_call_without_counts_is_estimated_marked_and_counted(tmp_path):
    api.run(campaign({"calls": 2}), tmp_path / "run")
    for made in calls_of(tmp_path / "run"):
        assert json.loads(made.payload)["completion"]["usage_estimated"]
        assert made.tokens > 0
