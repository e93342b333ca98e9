from __future__ import annotations

import json

import pytest
from hypothesis import given
from strategies import (
    candidates,
    events,
    measurements,
    proposals,
    requests,
    trials,
    verdicts,
)

from kernelwright.env.records import dumps, loads
from kernelwright.env.types import (
    Arm,
    Artifact,
    CacheState,
    Candidate,
    Directive,
    ErrorModel,
    Evidence,
    ExtentRange,
    Knob,
    Language,
    Measurement,
    ProcessPair,
    Proposal,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    TensorSpec,
    Unpaired,
    Verdict,
    Workload,
    knob_candidate,
)

BASE = knob_candidate({"bm": 64})
AGAINST = (Reference(Role.BASELINE, BASE),)


def measurement(role=Role.BASELINE, samples=None, workload="w"):
    samples = samples if samples is not None else Unpaired((1.0,), (2.0,))
    return Measurement(
        workload, role, BASE.key, samples, "clock", CacheState.COLD, Evidence.MODELLED, "machine"
    )


@given(candidates)
def test_candidate_round_trips_with_its_key(candidate):
    again = loads(Candidate, dumps(candidate))
    assert again == candidate
    assert again.key == candidate.key


@pytest.mark.parametrize(
    "strategy", [verdicts, proposals, requests, trials(), events, measurements()]
)
def test_every_record_round_trips(strategy):
    @given(strategy)
    def check(record):
        assert loads(type(record), dumps(record)) == record
        json.loads(dumps(record))

    check()


def test_key_ignores_the_order_of_knobs_but_not_their_types():
    assert knob_candidate({"a": 1, "b": 2}).key == knob_candidate({"b": 2, "a": 1}).key
    assert knob_candidate({"a": 1}).key != knob_candidate({"a": 1.0}).key
    assert knob_candidate({"a": 1}).key != knob_candidate({"a": True}).key
    assert knob_candidate({"a": "1"}).key != knob_candidate({"a": 1}).key


def test_equal_candidates_have_equal_keys():
    one, other = knob_candidate({"a": 1}), knob_candidate({"a": 1.0})
    assert one != other
    assert len({one, other, knob_candidate({"a": 1})}) == 2


def test_keys_do_not_change_between_versions():
    # A change here orphans every store and every shipped table.
    values = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
    assert knob_candidate(values).key == "ed536ca6350c97b26f51cf878902cb23"


def test_records_are_hashable_and_frozen():
    verdict = Verdict(Status.OK, measurements=(measurement(),))
    assert {verdict, Verdict(Status.OK, measurements=(measurement(),))} == {verdict}
    with pytest.raises(AttributeError):
        verdict.status = Status.WIN  # type: ignore[misc]


IMPOSSIBLE = [
    (lambda: Candidate(Language.KNOBS, "text"), "expected .name, value. pairs"),
    (lambda: Candidate(Language.KNOBS, ()), "expected .name, value. pairs"),
    (lambda: Candidate(Language.KNOBS, (("a", 1), ("a", 2))), "named twice"),
    (lambda: Candidate(Language.KNOBS, (("a", float("nan")),)), "finite"),
    (lambda: Candidate(Language.KNOBS, (("a", [1]),)), "number or text"),
    (lambda: Candidate(Language.SOURCE, ""), "expected text"),
    (lambda: Candidate(Language.SCHEDULE, (("split", 1),)), "expected directives"),
    (lambda: Candidate("prose", "x"), "not a valid Language"),
    (lambda: Directive("", "i"), "directive's name"),
    (lambda: Knob("a", ()), "at least one value"),
    (lambda: Knob("a", (1, 1)), "stands twice"),
    (lambda: Knob("a b", (1,)), "identifier"),
    (lambda: TensorSpec("A", ("m",), "float32", "inout"), "role"),
    (lambda: ExtentRange(4, 2), "low <= high"),
    (lambda: Workload((("m", 0),)), "at least 1"),
    (lambda: ErrorModel(1e-3, ""), "source"),
    (lambda: ErrorModel(1.5, "x"), "bound"),
    (lambda: Proposal(BASE, "x", tokens=-1), "tokens"),
    (lambda: Proposal(BASE, "x", usd=float("inf")), "usd"),
    (lambda: Request(BASE, Stage.SCREEN, ()), "at least one reference"),
    (lambda: Request(BASE, Stage.SCREEN, AGAINST * 2), "role stands twice"),
    (lambda: Request(BASE, Stage.SCREEN, AGAINST, pairs=0), "pairs"),
    (lambda: Request(BASE, Stage.SCREEN, AGAINST, trial=-1), "trial"),
    (lambda: Unpaired((), (1.0,)), "at least one time"),
    (lambda: Unpaired((0.0,), (1.0,)), "positive finite"),
    (lambda: Unpaired((float("inf"),), (1.0,)), "positive finite"),
    (lambda: Unpaired((1.0,), (1.0, 2.0), reference_exact=True), "exact reference is one"),
    (
        lambda: ProcessPair(Arm.CANDIDATE, (Arm.CANDIDATE, Arm.CANDIDATE), ((1.0, 1.0),)),
        "both arms",
    ),
    (lambda: ProcessPair(Arm.CANDIDATE, tuple(Arm), ()), "at least one pair"),
    (lambda: ProcessPair(Arm.CANDIDATE, tuple(Arm), ((1.0, -1.0),)), "positive finite"),
    (lambda: measurement(samples=()), "at least one process pair"),
    (lambda: Verdict(Status.OK), "expected measurements"),
    (lambda: Verdict(Status.WRONG, "x", facts=(("regs", float("nan")),)), "finite number"),
    (lambda: Verdict(Status.WRONG, "x", evidence="\ud800"), "UTF-8"),
    (lambda: Artifact("f", facts=(("regs", float("inf")),)), "finite number"),
    (lambda: Directive("split", "i", (float("nan"),)), "finite arguments"),
    (lambda: Candidate(Language.SOURCE, "\ud800"), "UTF-8"),
    (lambda: Proposal(None, "x"), "expected a candidate"),
    (lambda: Proposal(BASE, "x", tokens=2**63), "whole number"),
    (lambda: Proposal(BASE, "\ud800"), "UTF-8"),
    (lambda: Request(BASE, Stage.SCREEN, AGAINST, trial=1.5), "whole number"),
    (lambda: Knob("a", (float("nan"), 1.0)), "up to 2"),
    (lambda: Knob("a", (10**20,)), "up to 2"),
    (lambda: Workload((("m", True),)), "whole number"),
    (lambda: ProcessPair(Arm.CANDIDATE, tuple(Arm), ((1.0,),)), "two times"),
    (lambda: Verdict(Status.OK, "code", measurements=(measurement(),)), "no class code"),
    (
        lambda: Verdict(Status.WIN, measurements=(measurement(Role.LIBRARY),)),
        "against the baseline",
    ),
    (lambda: Verdict(Status.WRONG), "expected a class code"),
    (lambda: Verdict(Status.WRONG, "x", measurements=(measurement(),)), "no measurement"),
    (lambda: Verdict(Status.CRASHED, "x", max_error=0.1), "without a comparison"),
    (lambda: Verdict(Status.WRONG, "x", max_error=-1.0), "finite value"),
    (lambda: Verdict(Status.WRONG, "x", max_error=float("inf")), "finite value"),
    (lambda: Verdict(Status.OK, measurements=(measurement(), measurement())), "stands twice"),
    (
        lambda: Verdict(Status.OK, measurements=(measurement(),), floors_ns=(("w", 0.0),)),
        "positive",
    ),
]


@pytest.mark.parametrize(("make", "message"), IMPOSSIBLE)
def test_constructors_refuse_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_reading_runs_the_constructors():
    with pytest.raises(ValueError, match="no measurement"):
        loads(
            Verdict,
            dumps(Verdict(Status.OK, measurements=(measurement(),)))
            .replace('"ok"', '"wrong"')
            .replace('"code":null', '"code":"x"'),
        )


def test_statuses_are_partitioned():
    passed = {s for s in Status if s.passed}
    assert passed == {Status.OK, Status.WIN, Status.TIE, Status.LOSS}
    assert {s for s in Status if s.is_claim} == passed - {Status.OK}
    assert len(Status) == 13


def test_workload_with_a_range_is_not_fixed():
    workload = Workload((("m", ExtentRange(1, 64)), ("n", 8)))
    assert workload.label == "1..64x8"
    with pytest.raises(ValueError, match="extent m: expected a number"):
        _ = workload.fixed
