"""Requests have names, completions come back from their records, useless ones are recognised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.agents.chat import (
    REPLY_CLASSES,
    BackendError,
    ChatRequest,
    Completion,
    Malformed,
    classify,
    price,
)
from kernelwright.env.records import dumps, loads

REQUEST = ChatRequest("m", (("system", "s"), ("user", "u")), 100, 0.5, 7, '{"type":"object"}')
ANSWER = Completion("text", "stop", "m", "id", None, 3, 4, True, 0.25, "wrong_code:nan")


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("model", "n", "model"),
        ("messages", (("system", "s"), ("user", "v")), "message 1 (user)"),
        ("messages", (("user", "s"), ("user", "u")), "message 0 (system)"),
        ("max_tokens", 101, "max_tokens"),
        ("temperature", 0.6, "temperature"),
        ("seed", 8, "seed"),
        ("schema", None, "schema"),
    ],
)
def test_every_part_of_a_request_is_in_its_key(field, value, part):
    other = replace(REQUEST, **{field: value})
    assert other.key != REQUEST.key
    assert other.parts.get(part) != REQUEST.parts[part]


def test_equal_requests_have_one_key():
    assert replace(REQUEST).key == REQUEST.key


def test_a_request_without_messages_or_with_a_strange_role_is_refused():
    with pytest.raises(ValueError, match="at least one message"):
        replace(REQUEST, messages=())
    with pytest.raises(ValueError, match="found 'tool'"):
        replace(REQUEST, messages=(("tool", "x"),))
    with pytest.raises(ValueError, match="max_tokens"):
        replace(REQUEST, max_tokens=0)


@pytest.mark.parametrize("answer", [ANSWER, Completion(None, None, "m", "id")])
def test_a_completion_survives_its_record(answer):
    assert loads(Completion, dumps(answer)) == answer


def test_a_completion_refuses_counts_and_money_that_cannot_be():
    for wrong in ({"prompt_tokens": -1}, {"completion_tokens": -1}, {"usd": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            replace(ANSWER, **wrong)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"finish_reason": "length"}, "truncated"),
        ({"refusal": "no"}, "refused"),
        ({"finish_reason": "content_filter", "text": None}, "refused"),
        ({"text": None}, "empty"),
        ({"text": " \n"}, "empty"),
        ({"text": None, "finish_reason": "tool_calls"}, "empty"),
        ({"text": None, "finish_reason": "length"}, "truncated"),
    ],
)
def test_a_completion_without_a_whole_answer_is_classified(changes, kind):
    found = classify(replace(ANSWER, **changes))
    assert isinstance(found, Malformed)
    assert found.kind == kind


@pytest.mark.parametrize("reason", ["stop", None, "eos", "something new"])
def test_an_answer_is_read_whatever_a_server_calls_its_end(reason):
    assert classify(replace(ANSWER, finish_reason=reason)) == "text"


def test_classes_and_kinds_are_closed_sets():
    assert {Malformed(kind, "x").kind for kind in REPLY_CLASSES} == set(REPLY_CLASSES)
    with pytest.raises(ValueError, match="expected one of truncated"):
        Malformed("odd", "x")
    with pytest.raises(ValueError, match="expected one of transient"):
        BackendError("odd", "x")


def test_money_comes_from_a_price_list_only():
    assert price(1_000_000, 500_000, {"prompt": 2.0, "completion": 4.0}) == 4.0
    assert price(1_000_000, 500_000, None) == 0.0
