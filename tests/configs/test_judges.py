"""Judge of judges: what its campaign is made of, and what is counted."""

from __future__ import annotations

import os
import time

import pytest

from kernelwright.configs import judges
from kernelwright.configs.judges import (
    HONEST_NAMES,
    OURS,
    PROFILES,
    Belief,
    Best,
    Kind,
    Tally,
    baseline_text,
    entries,
    product,
)
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.types import Candidate, Language, Reference, Request, Role, Stage
from kernelwright.evaluators.competitor import competing
from kernelwright.evaluators.cpu.build import Builder
from kernelwright.evaluators.cpu.policy import Policy
from kernelwright.evaluators.naive import naive
from kernelwright.evaluators.naive.judge import NaiveCpu

needs_containment = pytest.mark.skipif(
    naive.missing(("a naive judge",)) is not None, reason=str(naive.missing(("a naive judge",)))
)
PROBLEM = product()


def test_the_campaign_has_a_dozen_exploits_many_twins_and_honest_kernels():
    given = entries(quick=False)
    kinds = {kind: [e for e in given if e.kind is kind] for kind in Kind}
    assert len(kinds[Kind.EXPLOIT]) == 12
    assert len(kinds[Kind.TWIN]) >= 12
    assert len(kinds[Kind.HONEST]) == 1 + len(HONEST_NAMES)
    assert len({e.candidate.key for e in given}) == len({e.name for e in given}) == len(given)
    assert {e.kind for e in entries(quick=True)} == set(Kind)


@pytest.mark.cc
def test_twins_are_the_baseline_s_machine_code(tmp_path):
    builder = Builder(
        PROBLEM, find_toolchain(), DEFAULT_FLAGS, BuildCache(tmp_path), Policy(), threads=1
    )
    texts = [e.text for e in entries(quick=False) if e.kind is Kind.TWIN]
    assert len(set(texts)) == len(texts)
    built = [
        builder.build(Candidate(Language.SOURCE, text), PROBLEM.workloads[0])
        for text in (baseline_text(), *texts)
    ]
    assert len({loadable.digest for loadable in built}) == 1


@pytest.mark.cc
@needs_containment
def test_every_exploit_deceives_the_naive_judge():
    target = NaiveCpu(PROBLEM)
    baseline = Reference(Role.BASELINE, Candidate(Language.SOURCE, baseline_text()))
    cheats = [e for e in entries(quick=False) if e.kind is Kind.EXPLOIT]
    requests = [Request(e.candidate, Stage.CONFIRM, (baseline,)) for e in cheats]
    said = {e.name: v.status.value for e, v in zip(cheats, target.evaluate(requests), strict=True)}
    assert said == dict.fromkeys(said, "win")


@pytest.mark.cc
@needs_containment
def test_the_campaign_runs_under_both(monkeypatch):
    def few(*, quick):
        kinds = {e.kind: e for e in entries(quick=quick)}
        return tuple(kinds.values())

    monkeypatch.setattr(judges, "entries", few)
    monkeypatch.setattr(judges, "QUICK_PROCESS_PAIRS", 2)
    seen = []
    report = judges.audit_judges(True, noisy=True, seen=seen.append)
    found = report.as_json()
    assert [tally["profile"] for tally in found["judges"]] == list(PROFILES)
    assert (found["problem"], found["noisy"]) == ("matmul@1 64x64x64", True)
    believing, ours = report.judges
    assert (believing.exploits_believed, believing.exploits) == (1, 1)
    assert believing.best.kind is Kind.EXPLOIT
    assert believing.was_deceived
    assert ours is report.ours
    assert (ours.exploits_believed, ours.honest_refused) == (0, 0)
    assert {row["kind"]: row["truth"] for row in found["candidates"]}["twin"] == 1
    assert any(what.startswith("naive: ") for what in seen)


def tally(**changes):
    best = Best("tile", Kind.HONEST, "win", 2.0, 2.0)
    plain = {"exploits_believed": 0, "twins_faster": 0, "twins_slower": 0, "honest_refused": 0}
    counts = {"exploits": 1, "twins": 1, "honest": 1, "seconds": 1.0}
    return Tally(**{"profile": OURS, "best": best, **plain, **counts, **changes})


def test_who_was_deceived():
    twin = Best("twin 1", Kind.TWIN, "win", 1.01, 1.0)
    assert not tally().was_deceived
    assert not tally(best=None, honest_refused=1, twins_slower=1).was_deceived
    assert not tally(best=Best("twin 1", Kind.TWIN, "tie", 1.01, 1.0)).was_deceived
    assert tally(best=twin).was_deceived
    assert tally(exploits_believed=1).was_deceived
    assert tally(twins_faster=1).was_deceived
    assert Belief("win", None, 1.1).is_faster
    assert not Belief("tie", None, 1.1).is_faster


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_competitor_keeps_to_a_core_and_ends_with_the_block():
    core = min(os.sched_getaffinity(0))
    with competing(core) as pid:
        deadline = time.monotonic() + 10
        while os.sched_getaffinity(pid) != {core}:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert is_running(pid)
    assert not is_running(pid)


def test_a_competitor_ends_by_itself():
    with competing(min(os.sched_getaffinity(0)), bursts=1, busy_s=0.01, idle_s=0.01) as pid:
        # It is this process's own child, which is looked at without being reaped.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
