"""What a budget is said to buy, beside what it bought."""

from __future__ import annotations

import pytest

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.usual import Usual
from kernelwright.configs.build import build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL

# Of each agent and of options that change what it asks.
OPTIONS = [(name, {}) for name in AGENT_DRIVERS if name != "hybrid"]
OPTIONS += [
    ("tool_loop", {"steps": 2}),
    ("evolve", {"crossover": 1.0}),
    ("refine", {"turns": 8}),
    ("llm", {"history": 30}),
    ("best_of_n", {"temperature": 0.5}),
]


def campaign(driver, budget, batch=4, **options):
    return {
        "name": "outlay",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": driver, **options},
        "agents": {"backend": {"name": "mock", "usd_per_million": 10.0}},
        "budget": budget,
        "batch": batch,
        "seed": 1,
    }


def announced_and_bought(config):
    built = build(read_config(config))
    store = MemoryStore()
    Campaign(built.plan, store).run()
    calls = sum(event.kind == MODEL_CALL for event in store.events())
    return built.outlay(), len(store.trials()), calls


@pytest.mark.parametrize(("driver", "options"), OPTIONS, ids=str)
@pytest.mark.parametrize("budget", [{"calls": 40}, {"tokens": 40_000}], ids=lambda b: next(iter(b)))
def test_what_a_budget_is_said_to_buy_is_within_30_percent(driver, options, budget):
    outlay, bought, _ = announced_and_bought(campaign(driver, budget, **options))
    assert 0.7 <= outlay.proposals / bought <= 1.3
    assert f"the budget buys about {outlay.proposals} proposals" in outlay.sentence


def test_money_is_planned_as_tokens_are():
    tokens = build(read_config(campaign("team", {"tokens": 40_000}))).outlay()
    money = build(read_config(campaign("team", {"usd": 0.4}))).outlay()
    assert money.proposals == tokens.proposals
    assert money.usd == pytest.approx(money.tokens * 10 / 1e6, rel=1e-3)


def test_a_batch_of_one_has_a_plan_for_each_program():
    outlay, bought, _ = announced_and_bought(campaign("team", {"calls": 40}, batch=1))
    assert 0.7 <= outlay.proposals / bought <= 1.3


def test_seeds_are_half_of_what_a_hybrid_proposes_until_there_are_enough():
    few, bought, _ = announced_and_bought(campaign("hybrid", {"calls": 4}))
    assert 0.7 <= few.proposals / bought <= 1.3
    enough, trials, calls = announced_and_bought(campaign("hybrid", {"calls": 40, "trials": 64}))
    assert (enough.proposals, enough.most, trials) == (None, 8, 64)
    assert calls < 40
    assert "it is asked for 8 at most" in enough.sentence


def test_a_driver_that_says_nothing_is_taken_for_the_plain_agent(tmp_path):
    (tmp_path / "own.py").write_text(
        "from kernelwright.agents.agent import agent\n"
        "from kernelwright.agents.llm import LlmDriver\n\n\n"
        "class Own(LlmDriver):\n"
        "    usual = property()\n"
    )
    own = build(read_config(campaign(f"{tmp_path / 'own.py'}:Own", {"calls": 40}))).outlay()
    assert own.calls == pytest.approx(1.25)
    assert Usual().others == 0
