"""Screens that end early and a race on a purse, as a campaign's file asks for them."""

from __future__ import annotations

import pytest

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.env.types import Stage
from kernelwright.search.store import SqliteStore

RECORDED = {
    "name": "early",
    "problem": {"name": "gemm_gpu", "m": 512, "n": 512, "k": 16384},
    "target": {"name": "recorded", "landscape": "h200_gemm_512x512x16384"},
    "driver": {"name": "random"},
    "budget": {"trials": 40},
}
EARLY = {"screen": {"pairs": 5, "cut": 1.15}, "race": {"extra": 0.25}}


def built(judge=None, **changes):
    return build(read_config({**RECORDED, **({"judge": judge} if judge else {}), **changes}))


def test_nothing_is_written_down_that_was_not_asked_for():
    plain = built()
    assert set(plain.resolved["judge"]) == {"confirm"}
    plan = plain.plan
    assert (plan.screen_pairs, plan.screen_cut, plan.race_extra) == (1, None, None)


@pytest.mark.parametrize(
    "target",
    [RECORDED["target"], {"name": "gpu-model", "noise": {"lognormal": 0.02}}],
    ids=["recorded", "gpu-model"],
)
def test_what_was_asked_for_reaches_the_plan(target):
    plan = built(EARLY, target=target).plan
    assert (plan.screen_pairs, plan.screen_cut, plan.race_extra) == (5, 1.15, 0.25)
    assert plan.contest.race_extra == 0.25


@pytest.mark.parametrize(
    ("judge", "target", "message"),
    [
        ({"screen": {"cut": 1.15}}, None, "pairs above 1"),
        ({"screen": {"pairs": 1, "cut": 1.15}}, None, "pairs above 1"),
        ({"screen": {"pairs": 5, "cut": 1.0}}, None, "expected more than 1.0"),
        ({"race": {"extra": 0.2, "rounds": 3}}, {"name": "gpu-model"}, "no 'extra' beside"),
        ({"race": {"rounds": 3}}, None, "no 'rounds' on target recorded"),
    ],
)
def test_what_does_not_go_together_is_refused(judge, target, message):
    with pytest.raises(ConfigError, match=message):
        built(judge, target=target or RECORDED["target"])


def test_a_recorded_search_with_a_cut_and_a_race(tmp_path):
    api.run({**RECORDED, "judge": EARLY}, tmp_path / "run")
    with SqliteStore(tmp_path / "run" / "run.sqlite", readonly=True) as store:
        trials = store.trials()
    counts, raced = [], 0
    for trial in trials:
        for stage, verdict in trial.verdicts:
            found = [len(m.samples.candidate_ns) for m in verdict.measurements]
            if stage is Stage.SCREEN:
                counts += found
            elif stage is Stage.RACE:
                raced += sum(found)
    assert set(counts) <= {1, 2, 3, 4, 5}
    assert len(set(counts)) > 1
    assert 0 < raced <= 0.25 * sum(counts)
