"""What is recorded of questions: each message once, and enough to say what differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.agents import questions
from kernelwright.agents.asking import ReplayMismatch, call_event, recorded
from kernelwright.agents.chat import ChatRequest, Completion, digest, line_hashes
from kernelwright.agents.questions import Questions, in_full
from kernelwright.search.trial import event

SYSTEM, PAGE = ("system", "be brief"), ("user", "one\ntwo\nthree")
MORE = (("assistant", "an answer"), ("user", "and then?\nsay"))
FIRST = ChatRequest("m", (SYSTEM, PAGE), 100, 0.5, 7)
SECOND = replace(FIRST, messages=(SYSTEM, PAGE, *MORE))
THIRD = replace(FIRST, messages=(SYSTEM, PAGE, *MORE, ("assistant", "no"), ("user", "go on")))
OTHER = replace(FIRST, messages=(SYSTEM, ("user", "something else")))
ASKED = ((1, 0, FIRST), (1, 1, SECOND), (1, 2, OTHER), (2, 0, THIRD), (2, 1, FIRST))


def kept(asked=ASKED):
    known = Questions()
    return {(ask, slot): known.kept(ask, slot, request) for ask, slot, request in asked}


def test_a_message_is_recorded_once():
    data = kept()
    roles = {place: [role for role, _, _ in each["new"]] for place, each in data.items()}
    assert roles == {
        (1, 0): ["system", "user"],
        (1, 1): ["assistant", "user"],
        (1, 2): ["user"],
        (2, 0): ["assistant", "user"],
        (2, 1): [],
    }
    assert "after" not in data[1, 0]
    after = {place: each["after"] for place, each in data.items() if "after" in each}
    assert after == {(1, 1): [1, 0, 2], (1, 2): [1, 0, 1], (2, 0): [1, 1, 4], (2, 1): [1, 0, 2]}


def test_the_references_lead_to_all_messages():
    data = kept()
    for ask, slot, request in ASKED:
        whole = in_full(data[ask, slot], lambda *at: data[at])
        assert whole["lines"] == [line_hashes(text) for _, text in request.messages]
        for name, value in request.parts.items():
            assert str(value).startswith(str(whole["request"][name]))


def test_what_is_forgotten_is_recorded_again(monkeypatch):
    monkeypatch.setattr(questions, "MOST_KNOWN", 2)
    asked = [(n, 0, replace(FIRST, messages=(SYSTEM, ("user", f"{n}")))) for n in range(1, 5)]
    data = kept((*asked, (5, 0, FIRST), (6, 0, asked[0][2])))
    # The system message is used each time, the pages are not.
    assert [len(each["new"]) for each in data.values()] == [2, 1, 1, 1, 1, 1]
    whole = in_full(data[6, 0], lambda *at: data[at])
    assert whole["lines"] == [line_hashes(SYSTEM[1]), line_hashes("1")]


ANSWER = Completion("yes", "stop", "m", "id")


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(THIRD, seed=8), r"differs in seed$"),
        (
            replace(THIRD, messages=(SYSTEM, ("user", "one\n2\nthree"), *THIRD.messages[2:])),
            r"differs in message 1 \(user\) from line 2 \(now '2'\)$",
        ),
        (
            replace(THIRD, messages=(*THIRD.messages[:3], ("user", "and"), *THIRD.messages[4:])),
            r"differs in message 3 \(user\) from line 1 \(now 'and'\)$",
        ),
        (SECOND, r"differs in message 4 \(assistant\), message 5 \(user\)$"),
    ],
)
def test_a_mismatch_names_the_part_and_the_line(now, said):
    data = kept()
    calls = {at: call_event(*at, each, ANSWER) for at, each in data.items()}
    past = calls[2, 0]
    assert recorded(past, THIRD, lambda *at: calls[at].data) == ANSWER
    with pytest.raises(ReplayMismatch, match=said):
        recorded(past, now, lambda *at: calls[at].data)


def test_a_call_recorded_before_there_were_references_may_be_referred_to():
    old = {
        "key": FIRST.key,
        "model": "m",
        "request": FIRST.settings
        | {f"message {i} ({role})": digest(text) for i, (role, text) in enumerate(FIRST.messages)},
        "lines": [line_hashes(text) for _, text in FIRST.messages],
    }
    assert event("model_call", 1, **old).data == in_full(old, lambda *at: {})
    calls = {(1, 0): old, (1, 1): kept()[1, 1], (1, 2): kept()[1, 2]}
    for place, request in (((1, 1), SECOND), ((1, 2), OTHER)):
        whole = in_full(calls[place], lambda *at: calls[at])
        assert whole["lines"] == [line_hashes(text) for _, text in request.messages]
        now = request.parts
        assert all(str(now[name]).startswith(str(v)) for name, v in whole["request"].items())
