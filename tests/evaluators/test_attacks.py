"""The attacks of docs/attacks.md: each ends as the head of its text says, and the worst of them are
tried by every run of the tests.
"""

from __future__ import annotations

import math
import platform
import re
import statistics
from pathlib import Path

import pytest

from kernelwright.env.objective import process_log_ratios
from kernelwright.env.types import (
    Candidate,
    Language,
    Reference,
    Request,
    Role,
    Stage,
)
from kernelwright.evaluators.corpus.specimen import named
from kernelwright.evaluators.cpu.policy import Judging, Profile
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
from kernelwright.evaluators.zoo.audit import MARGIN

LOOKS = 3
FOLDER = Path(__file__).parent / "attacks"
TEXTS = sorted(FOLDER.glob("*.c"))
# What once deceived this judge, and is cheap to try.
DECEIVED = {"003", "005", "006", "010", "011", "012", "014", "015", "020", "069"}
# These take a compiler's or a call's whole time limit, or fill the build cache.
LONG = {"030", "035", "040"}
pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the texts know an x86"),
]


def head_of(path):
    first = path.read_text(errors="surrogateescape").splitlines()[0]
    parts = first.strip("/* ").split(";")
    return dict(part.strip().split(": ", 1) for part in parts if ": " in part)


def judged(path):
    head = head_of(path)
    problem = named(head["problem"]).make()
    profile = Profile(head.get("profile", "strict"))
    judge = Cpu(problem, threads=int(head.get("threads", "1")), judging=Judging(profile=profile))
    base = Reference(Role.BASELINE, unscheduled_program(problem))
    candidate = Candidate(Language.SOURCE, path.read_text())
    request = Request(candidate, Stage.RACE, (base,), process_pairs=3, pairs=9)
    return judge.evaluate([request])[0]


def ends_as_expected(path):
    """At once, or "no gain" in one of three looks: a gain is there in every one, luck is not."""
    expected = [words.strip() for words in head_of(path)["expect"].split("|")]
    gains = []
    for _ in range(LOOKS):
        verdict = judged(path)
        if verdict.status.value in expected or f"{verdict.status} {verdict.code}" in expected:
            return
        assert verdict.status.passed, f"{verdict.status} {verdict.code}: {verdict.evidence}"
        assert "no gain" in expected, expected
        logs = process_log_ratios(verdict.measurements[0])
        gains.append(math.exp(statistics.median(logs)))
        if gains[-1] <= MARGIN:
            return
    raise AssertionError(f"expected at most {MARGIN} times its twin, found {gains}")


def test_every_text_says_how_it_must_end():
    assert len(TEXTS) > 100
    page = (Path(__file__).parents[2] / "docs" / "attacks.md").read_text()
    for path in TEXTS:
        number = path.name.split("_")[0]
        assert {"problem", "expect"} <= head_of(path).keys(), path.name
        assert re.search(rf"^\| {number}\b", page, re.MULTILINE), number
    assert {path.name[:3] for path in TEXTS} >= DECEIVED


@pytest.mark.parametrize("path", [p for p in TEXTS if p.name[:3] in DECEIVED], ids=lambda p: p.stem)
def test_what_deceived_the_judge_does_so_no_more(path):
    ends_as_expected(path)


@pytest.mark.audit
@pytest.mark.parametrize(
    "path", [p for p in TEXTS if p.name[:3] not in DECEIVED | LONG], ids=lambda p: p.stem
)
def test_an_attack_ends_as_expected(path):
    ends_as_expected(path)
