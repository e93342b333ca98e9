"""A driver that asks the model itself: its calls are recorded, counted and read back."""

from __future__ import annotations

import pytest

from kernelwright.agents.direct import FIRST_SLOT
from kernelwright.configs import api
from kernelwright.configs.transcript import prompt_of
from kernelwright.display.runs import summary_text
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import MODEL_CALL

DIRECT = """
from kernelwright.agents.chat import BudgetSpentError, ChatRequest
from kernelwright.agents.llm import LlmDriver
from kernelwright.env.types import Proposal


class Direct:
    def __init__(self, space, *, seed, batch, backend, careful: bool = False):
        self._space, self._seed, self._backend, self._careful = space, seed, backend, careful
        self._count, self.stopped = 0, None

    def ask(self, n):
        out = []
        for _ in range(n):
            self._count += 1
            seed = self._seed + self._count
            question = (("user", "give me knobs"),)
            request = ChatRequest(self._backend.model, question, 100, 0.5, seed)
            try:
                self._backend.complete(request)
            except BudgetSpentError:
                if not self._careful:
                    raise
                break
            candidate = self._space.candidate(self._space.valid[self._count])
            out.append(Proposal(candidate, "direct"))
        return out

    def tell(self, trials):
        pass


class Both(LlmDriver):
    def __init__(self, space, *, seed, batch, problem, backend, prompt, journal, context):
        parts = {"problem": problem, "backend": backend, "prompt": prompt}
        super().__init__(space, seed=seed, batch=batch, journal=journal, context=context, **parts)
        self._backend, self._count = backend, 0

    def ask(self, n):
        self._count += 1
        request = ChatRequest(self._backend.model, (("user", "ready?"),), 16, 0.0, self._count)
        self._backend.complete(request)
        return super().ask(n)
"""


def campaign(tmp_path, budget, name="Direct", **options):
    (tmp_path / "direct.py").write_text(DIRECT)
    return {
        "name": "direct",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": f"{tmp_path / 'direct.py'}:{name}", **options},
        "agents": {"backend": {"name": "mock"}},
        "budget": budget,
        "batch": 4,
    }


def record_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        events = [e for e in store.events() if e.kind not in ("stopped", "finished", "extended")]
        return [trial.candidate for trial in store.trials()], events


def test_its_calls_are_in_the_record_and_the_summary(tmp_path):
    summary = api.run(campaign(tmp_path, {"trials": 6}), tmp_path / "run")
    calls = [e for e in record_of(tmp_path / "run")[1] if e.kind == MODEL_CALL]
    assert [(e.ask, e.slot - FIRST_SLOT) for e in calls] == [
        (a, s) for a in (1, 2) for s in range(4)
    ]
    assert summary["tokens"] == sum(e.tokens for e in calls) > 0
    assert f"calls, {summary['tokens']:,} tokens" in summary_text(summary)
    told = prompt_of(tmp_path / "run", "2")
    assert told["messages"] == [{"role": "user", "content": "give me knobs"}]


@pytest.mark.parametrize(("is_careful", "trials"), [(False, 4), (True, 6)])
def test_the_budget_of_calls_says_why_it_stopped(tmp_path, is_careful, trials):
    config = campaign(tmp_path, {"calls": 6}, careful=is_careful)
    summary = api.run(config, tmp_path / "run")
    assert summary["stop"] == {"rule": "calls", "reason": "6 calls of the model were made"}
    assert summary["trials"] == trials


def test_a_larger_budget_goes_on_without_a_call_again(tmp_path, monkeypatch):
    from kernelwright.agents.backends.mock import Mock

    api.run(campaign(tmp_path, {"trials": 12}), tmp_path / "whole")
    asked, complete = [], Mock.complete

    def counted(self, request):
        asked.append(request.key)
        return complete(self, request)

    monkeypatch.setattr(Mock, "complete", counted)
    for trials in (4, 8, 12):
        api.run(campaign(tmp_path, {"trials": trials}), tmp_path / "parts")
    assert len(asked) == len(set(asked)) == 12
    assert record_of(tmp_path / "parts") == record_of(tmp_path / "whole")


def test_a_desk_and_questions_of_one_s_own_go_together(tmp_path):
    summary = api.run(campaign(tmp_path, {"trials": 8}, "Both"), tmp_path / "run")
    calls = [e for e in record_of(tmp_path / "run")[1] if e.kind == MODEL_CALL]
    own = [e for e in calls if e.slot >= FIRST_SLOT]
    assert len(own) == len({e.ask for e in calls}) < len(calls)
    assert summary["replies"]["proposed"] >= 8
