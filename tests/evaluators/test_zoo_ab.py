"""The zoo: its records, the liveness of its families A (not computing the answer) and B (replaying
an old one), and the audit that runs it against a judge.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import pytest

from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Status,
    Verdict,
)
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.evaluators.naive import naive
from kernelwright.evaluators.zoo import audit, exploits
from kernelwright.evaluators.zoo.audit import audit_cheats, believed
from kernelwright.evaluators.zoo.catalogue import catalogue
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant
from kernelwright.evaluators.zoo.page import generated

FAMILIES = [exploit for exploit in exploits() if exploit.id[0] in "AB"]
PAIRS = [
    pytest.param(exploit, variant, id=f"{exploit.id}-{variant.name}")
    for exploit in FAMILIES
    for variant in exploit.variants
]
TWINS = [
    pytest.param(variant, id=f"{exploit.id}-{variant.name}")
    for exploit in FAMILIES
    for variant in exploit.variants
    if variant.twin
]


# The classes


def test_both_families_are_whole():
    ids = [f"A{n}" for n in range(1, 17)] + [f"B{n}" for n in range(1, 12)]
    assert [exploit.id for exploit in FAMILIES] == ids


@pytest.mark.parametrize("exploit", FAMILIES, ids=lambda exploit: exploit.id)
def test_a_class_is_the_catalogues(exploit):
    row = catalogue()[exploit.id]
    assert (exploit.name, exploit.priority) == (row.name, row.priority)
    # A degenerate task is the task's fault, and no kernel's.
    assert bool(exploit.variants) == (row.has_c_form and exploit.id != "A9")
    if exploit.variants and exploit.priority == "P0":
        assert len(exploit.variants) >= 2


@pytest.mark.cc
@pytest.mark.parametrize(("exploit", "variant"), PAIRS)
def test_a_variant_deceives_the_naive_judge(exploit, variant):
    if reason := naive.missing(variant.needs):
        pytest.skip(reason)
    assert believed(variant, variant.made())


@pytest.mark.cc
@pytest.mark.parametrize("variant", TWINS)
def test_a_twin_is_honest(variant):
    assert naive.judge(variant.made(), variant.twin, **variant.naive).passed


@pytest.mark.cc
@pytest.mark.audit
@pytest.mark.parametrize("exploit", [e for e in FAMILIES if e.variants], ids=lambda e: e.id)
def test_the_judge_of_this_machine_is_not_deceived(exploit):
    report = audit_cheats(False, Cpu, classes=[exploit])
    assert [row for row in report.classes if not row.detected] == []


# Records


def variant(**changes):
    given = {"problem": "row_sum", "options": {"rows": 4, "cols": 4}, "source": "void row_sum();"}
    return Variant(**{"name": "one", **given, "expect": (("wrong", "wrong_value"),), **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "two words"}, "words with underscores"),
        ({"expect": ()}, "what a judge may answer"),
        ({"expect": (("ok", ""),)}, "failures with a code"),
        ({"expect": (("wrong", ""),)}, "failures with a code"),
        ({"expect": (("naughty", "x"),)}, "naughty"),
        ({"neutralised": True}, "without the trick"),
        ({"gain": Gain.SHIFTED}, "without the trick"),
        ({"needs": ("luck",)}, "needs: expected some of"),
        ({"options": {"rows": (1, 2), "cols": (1, 2, 3)}}, "tuples of one length"),
    ],
)
def test_a_variant_that_does_not_go_together_is_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        variant(**changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "F1"}, "an id such as A1"),
        ({"id": "A"}, "an id such as A1"),
        ({"priority": "P3"}, "expected a priority"),
        ({"variants": ()}, "either variants or why"),
        ({"not_applicable": "none"}, "either variants or why"),
        ({"variants": (variant(), variant())}, "stands twice"),
    ],
)
def test_a_class_that_does_not_go_together_is_refused(changes, said):
    given = {"id": "A1", "name": "n", "priority": "P0", "about": "a", "variants": (variant(),)}
    with pytest.raises(ValueError, match=said):
        Exploit(**{**given, **changes})


def test_tuples_of_options_are_shapes():
    made = variant(options={"rows": (4, 8), "cols": 16}).made()
    assert [workload.label for workload in made.workloads] == ["4x16", "8x16"]


def test_a_problem_may_be_a_dotted_path():
    path = "kernelwright.env.problems.row_sum:row_sum"
    assert variant(problem=path).made().identity == row_sum(rows=4, cols=4).identity


# The audit, of judges that answer as they are told


def passed(problem, ratio):
    times = ((100.0, 100.0 * ratio),) * 3
    pair = ProcessPair(Arm.CANDIDATE, (Arm.CANDIDATE, Arm.REFERENCE), times)
    fixed = {
        "role": "baseline",
        "reference_key": "k",
        "clock": "none",
        "cache_state": CacheState.COLD,
        "evidence": Evidence.MEASURED,
        "machine": "none",
    }
    measured = tuple(Measurement(w.label, samples=(pair,), **fixed) for w in problem.workloads)
    return Verdict(Status.OK, max_error=0.0, measurements=measured)


def refused(status, code):
    return lambda problem: Verdict(Status(status), code)


def faster(ratio):
    return lambda problem: passed(problem, ratio)


def judge_that(*answers, twin=1.0, asked=None):
    """Answers in turns, and with ``twin`` to a text that says that it is one."""
    turns = cycle(answers)

    def make(problem, *, threads, flags):
        def evaluate(requests):
            (request,) = requests
            if asked is not None:
                asked.append((request.candidate.payload, threads, flags))
            if "twin" in request.candidate.payload:
                return [twin(problem) if callable(twin) else passed(problem, twin)]
            return [next(turns)(problem)]

        return SimpleNamespace(evaluate=evaluate)

    return make


@pytest.fixture(autouse=True)
def _no_naive_judge(request, monkeypatch):
    if "cc" not in request.keywords:
        monkeypatch.setattr(audit, "believed", lambda variant, problem: True)
        monkeypatch.setattr(naive, "missing", lambda needs: None)


def one(made, **changes):
    exploit = Exploit("A1", "n", "P0", "a", (variant(**changes),))
    (row,) = audit_cheats(False, made, classes=[exploit]).classes
    return row


NEUTRALISED = {"expect": (), "neutralised": True, "twin": "void row_sum(); // twin"}


def test_an_expected_answer_is_detected():
    row = one(judge_that(refused("wrong", "wrong_value")))
    assert (row.detected, row.verdict, row.code) == (True, "wrong", "wrong_value")
    assert row.naive_passed


@pytest.mark.parametrize(
    "answer",
    [faster(1.0), refused("wrong", "unwritten"), refused("broken", "x"), refused("timeout", "t")],
)
def test_any_other_answer_is_not(answer):
    assert not one(judge_that(answer)).detected


@pytest.mark.parametrize("ratio", [0.2, 0.9, 1.0, 1.15])
def test_a_neutralised_exploit_is_judged_like_its_twin(ratio):
    row = one(judge_that(faster(ratio)), **NEUTRALISED)
    assert row.detected
    assert row.gained == pytest.approx(ratio)


def test_one_that_is_clearly_faster_is_not_neutralised():
    row = one(judge_that(faster(1.5)), **NEUTRALISED)
    assert not row.detected
    assert row.verdict == "ok"


def test_one_slow_twin_is_no_gain():
    twins = iter([0.5, 1.0])
    made = judge_that(faster(1.0), twin=lambda problem: passed(problem, next(twins)))
    assert one(made, **NEUTRALISED).detected


def test_one_that_fails_later_is_detected_if_that_is_expected():
    late = (faster(3.0), refused("wrong", "unwritten"))
    stale = {**NEUTRALISED, "expect": (("wrong", "unwritten"),)}
    assert one(judge_that(*late), **stale).detected
    assert not one(judge_that(*late), **NEUTRALISED).detected


def test_a_twin_that_fails_is_an_error():
    made = judge_that(faster(1.0), twin=refused("wrong", "wrong_value"))
    row = one(made, **NEUTRALISED)
    assert (row.verdict, row.detected) == ("error", False)
    assert "the twin is wrong wrong_value" in row.evidence


def test_what_raises_is_a_row():
    def make(problem, *, threads, flags):
        raise RuntimeError("no judge today")

    row = one(make)
    assert (row.verdict, row.code, row.detected) == ("error", None, False)
    assert row.evidence == "RuntimeError: no judge today"
    broken = one(judge_that(refused("wrong", "wrong_value")), problem="no.such:problem")
    assert (broken.verdict, broken.naive_passed) == ("error", False)


def test_the_predecessor_goes_first_and_threads_are_told():
    asked = []
    made = judge_that(refused("wrong", "wrong_value"), asked=asked)
    one(made, previous="void row_sum(); // before", threads=2)
    assert [text for text, _, _ in asked] == ["void row_sum(); // before", "void row_sum();"]
    assert {threads for _, threads, _ in asked} == {2}


def test_quick_takes_the_first_of_each_class():
    two = (variant(), variant(name="two"))
    classes = [Exploit(f"A{n}", "n", "P0", "a", two) for n in (1, 2)]
    classes.append(Exploit("A12", "n", "P0", "a", not_applicable="none"))
    made = judge_that(refused("wrong", "wrong_value"))
    rows = {
        quick: [(r.id, r.variant) for r in audit_cheats(quick, made, classes=classes).classes]
        for quick in (True, False)
    }
    assert rows[True] == [("A1", "one"), ("A2", "one")]
    assert rows[False] == [(name, v) for name in ("A1", "A2") for v in ("one", "two")]


def test_what_cannot_be_contained_is_skipped_with_the_reason(monkeypatch):
    monkeypatch.setattr(naive, "missing", lambda needs: "no room" if needs else None)
    classes = [Exploit("D14", "n", "P0", "a", (variant(needs=("fork",)), variant(name="two")))]
    made = judge_that(refused("wrong", "wrong_value"))
    report = audit_cheats(False, made, classes=classes)
    assert report.skipped == (("D14", "one", "no room"),)
    assert [row.variant for row in report.classes] == ["two"]


def kernels(*names):
    problem = SimpleNamespace(make=lambda: row_sum(rows=4, cols=4))
    return [
        SimpleNamespace(name=n, problem=problem, source=n, flags=("-DX",), threads=3) for n in names
    ]


def test_honest_kernels_are_counted():
    asked = []
    answers = (faster(1.0), refused("rejected", "forbidden_symbol"), lambda problem: 1 / 0)
    made = judge_that(*answers, asked=asked)
    report = audit_cheats(True, made, honest=kernels("a", "b", "c"), classes=[])
    assert [row.rejected for row in report.honest] == [False, True, True]
    assert (report.rejected.count, report.rejected.total) == (2, 3)
    assert report.honest[2].evidence.startswith("ZeroDivisionError")
    _, threads, flags = asked[0]
    assert threads == 3
    assert flags[-1] == "-DX"


def test_a_report_is_json_that_the_page_is_made_from():
    classes = [Exploit("A1", catalogue()["A1"].name, "P0", "a", (variant(), variant(name="two")))]
    made = judge_that(refused("wrong", "wrong_value"), faster(1.0))
    report = audit_cheats(False, made, honest=kernels("a"), classes=classes)
    saved = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert (saved["detected"], saved["total"], saved["live"]) == (1, 2, 2)
    assert (saved["honest_total"], saved["honest_rejected"]) == (1, 1)
    # Wilson's limits for one of two.
    assert saved["detected_low"] == pytest.approx(0.0945, abs=1e-4)
    assert "A1" in generated(saved)


# What the naive judge believes, of one that answers as it is told


def results(*speedups):
    return iter([naive.NaiveResult(s > 0, s, False, 0, "") for s in speedups])


@pytest.mark.parametrize(
    ("gain", "own", "twin", "wanted"),
    [
        (Gain.FASTER, (9, 9, 9), (), True),
        (Gain.FASTER, (9, 1, 9, 1, 9), (), True),
        (Gain.FASTER, (1, 9, 1, 9, 1), (), False),
        (Gain.FASTER, (0, 0, 0), (), False),
        (Gain.WRONG, (0.5,), (), True),
        (Gain.WRONG, (0,), (), False),
        (Gain.SHIFTED, (1, 1, 1, 9, 9), (3, 3, 3, 3, 3), True),
        (Gain.SHIFTED, (1, 1, 1, 9, 9), (1.2, 1.2, 1.2, 0.1, 0.1), False),
        (Gain.SHIFTED, (3, 3, 3, 3, 0), (1, 1, 1, 1, 1), False),
        (Gain.DAMAGE, (1,), (), False),
    ],
)
def test_a_gain_is_what_was_claimed(gain, own, twin, wanted, monkeypatch):
    texts = {"void row_sum();": results(*own), "twin": results(*twin)}
    monkeypatch.setattr(naive, "judge", lambda problem, text, **_: next(texts[text]))
    made = variant(gain=gain, twin="twin")
    assert believed(made, made.made()) is wanted


@pytest.mark.parametrize(("died", "survivors"), [(True, 0), (False, 2)])
def test_damage_is_a_gain(died, survivors, monkeypatch):
    result = replace(next(results(1)), died=died, survivors=survivors)
    monkeypatch.setattr(naive, "judge", lambda problem, text, **_: result)
    made = variant(gain=Gain.DAMAGE)
    assert believed(made, made.made())
