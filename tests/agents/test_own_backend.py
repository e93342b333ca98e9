"""Backends of one's own, which say as little as the seam allows: what they spend is counted all the
same, and their failures have a kind.
"""

from __future__ import annotations

import io
from http.client import IncompleteRead
from urllib.error import HTTPError

import pytest

from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.backends.settling import Settled, counted, failure_of
from kernelwright.agents.backends.wrappers import Limited, Priced
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.display.runs import summary_text
from kernelwright.search.admission import DriverError
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import MODEL_CALL

REQUEST = ChatRequest("m", (("user", "a" * 40),), 100, 0.5, 7)
OWN = """
import json
import random

from kernelwright.agents.chat import Completion


class Guess:
    def __init__(self, *, broken: bool = False):
        self.model, self.priced, self.missing = "guess", False, ()
        self._broken, self._calls = broken, 0

    def complete(self, request):
        self._calls += 1
        if self._broken:
            raise ConnectionRefusedError("connection refused")
        r = random.Random(request.key)
        knobs = {"bm": r.choice([64, 128, 256]), "bn": r.choice([64, 128, 256])}
        knobs |= {"bk": r.choice([32, 64]), "warps": r.choice([4, 8])}
        knobs |= {"stages": r.choice([2, 3, 4]), "group_m": r.choice([1, 4, 8])}
        text = "```json\\n" + json.dumps(knobs) + "\\n```"
        return Completion(text, "stop", self.model, request.key)
"""


def campaign(tmp_path, budget, prices=None, **backend):
    (tmp_path / "own.py").write_text(OWN)
    agents = {"backend": {"name": f"{tmp_path / 'own.py'}:Guess", **backend}}
    if prices is not None:
        agents["prices"] = {"guess": {"prompt": prices, "completion": prices}}
    return {
        "name": "own",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": agents,
        "budget": budget,
        "batch": 4,
    }


def calls_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        return [e for e in store.events() if e.kind == MODEL_CALL]


@pytest.mark.parametrize(
    ("budget", "rule"), [({"usd": 0.2, "trials": 16}, "usd"), ({"tokens": 3000}, "tokens")]
)
def test_limits_hold_of_a_backend_that_counts_nothing(tmp_path, budget, rule):
    summary = api.run(campaign(tmp_path, budget, prices=100.0), tmp_path / "run")
    calls = calls_of(tmp_path / "run")
    spent = [call.usd if rule == "usd" else call.tokens for call in calls]
    assert sum(spent[:-1]) < budget[rule] <= sum(spent)
    assert summary["stop"]["rule"] == rule
    assert all(call.data["completion"]["usage_estimated"] for call in calls)
    assert f"calls, {summary['tokens']:,} tokens" in summary_text(summary)


def test_a_backend_without_prices_does_not_start_under_a_limit_of_money(tmp_path):
    with pytest.raises(ConfigError, match="no price of guess"):
        api.check(campaign(tmp_path, {"usd": 1.0}))


def test_money_that_nobody_counts_is_not_called_nothing(tmp_path):
    summary = api.run(campaign(tmp_path, {"trials": 4}), tmp_path / "run")
    assert summary["unpriced"] == ["guess"]
    said = f" {summary['tokens']:,} tokens, money not counted (no price of guess)"
    assert f"model: {summary['calls']} calls,{said}" in summary_text(summary).splitlines()
    assert said in summary_text(api.show(tmp_path / "run"))


def test_what_was_counted_is_left_as_it_is():
    whole = Completion("four", "stop", "m", "i", prompt_tokens=3, completion_tokens=2)
    assert counted(whole, REQUEST) is whole
    half = counted(Completion("eight ch", "stop", "m", "i", prompt_tokens=3), REQUEST)
    assert (half.prompt_tokens, half.completion_tokens, half.usage_estimated) == (3, 2, True)
    silent = counted(Completion(None, "stop", "m", "i"), REQUEST)
    assert (silent.prompt_tokens, silent.completion_tokens) == (10, 0)


class Scripted:
    model, priced, missing = "m", True, ()

    def __init__(self, answer, **parts):
        self.answer, self.gates = answer, []
        vars(self).update(parts)

    def complete(self, request):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_a_backend_s_own_price_list_is_charged_by():
    prices = {"prompt": 1e6, "completion": 2e6}
    answer = Completion("four", "stop", "m", "i")
    assert Settled(Scripted(answer, usd_per_million=prices)).complete(REQUEST).usd == 12
    charged = Completion("four", "stop", "m", "i", usd=0.5)
    assert Settled(Scripted(charged, usd_per_million=prices)).complete(REQUEST).usd == 0.5
    of_several = Completion("four", "stop", "m", "i", answered_by="free", prompt_tokens=10)
    assert Settled(Scripted(of_several, usd_per_million=prices)).complete(REQUEST) is of_several


def test_something_else_than_a_completion_is_refused_by_name():
    with pytest.raises(TypeError, match="backend m: expected a Completion, found str 'hello'"):
        Settled(Scripted("hello")).complete(REQUEST)


def http_error(status):
    return HTTPError("http://x", status, "no", {}, io.BytesIO())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError("slow"), "transient"),
        (ConnectionRefusedError("refused"), "transient"),
        (OSError("the network is down"), "transient"),
        (IncompleteRead(b""), "transient"),
        (http_error(503), "transient"),
        (http_error(401), "permanent"),
        (http_error(413), "repairable"),
        (FileNotFoundError("key.txt"), "permanent"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:24],
)
def test_a_standard_error_has_a_kind(error, kind):
    with pytest.raises(BackendError) as caught:
        Settled(Scripted(error)).complete(REQUEST)
    assert caught.value.kind == kind == failure_of(error).kind
    assert type(error).__name__ in caught.value.message


def test_any_other_error_is_its_author_s():
    with pytest.raises(ZeroDivisionError):
        Settled(Scripted(ZeroDivisionError())).complete(REQUEST)


def test_retries_are_for_what_a_standard_error_says_may_pass():
    with pytest.raises(BackendError, match="attempt 1, the last"):
        Limited(Settled(Scripted(TimeoutError("slow"))), Limits()).complete(REQUEST)


def test_a_backend_that_fails_in_passing_ends_the_run_with_one_sentence(tmp_path):
    refused = "the last: ConnectionRefusedError: connection refused"
    with pytest.raises(DriverError, match=refused):
        api.run(campaign(tmp_path, {"trials": 4}, broken=True), tmp_path / "run")
    kinds = [call.data["error"]["kind"] for call in calls_of(tmp_path / "run")]
    assert kinds == ["transient"] * 2  # of the third the run ends


def test_attempts_of_a_priced_backend_pass_the_gate_one_by_one():
    gates = []
    inner = Scripted(Completion("x", "stop", "m", "i"), pass_through=gates.append)
    Limited(Priced(Settled(inner), {"prompt": 1.0, "completion": 1.0}), Limits())
    assert len(gates) == 1
