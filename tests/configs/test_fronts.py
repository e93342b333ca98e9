"""What drivers leave in a run beside trials: a front, and events that survive an interruption."""

from __future__ import annotations

import pytest

from kernelwright.configs import api
from kernelwright.display.runs import summary_text
from kernelwright.search.store import DATABASE, SqliteStore


def campaign(driver, trials):
    return {
        "name": "small",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": driver,
        "judge": {"confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1}},
        "budget": {"trials": trials},
    }


def test_run_and_show_tell_the_front(tmp_path):
    driver = {"name": "pareto", "objectives": ["time", "footprint"]}
    summary = api.run(campaign(driver, 64), tmp_path)
    front = summary["front"]
    assert front["objectives"] == ["time", "footprint"]
    speedups = [row["speedup"] for row in front["rows"]]
    sizes = [row["facts"]["footprint"] for row in front["rows"]]
    assert len(speedups) > 2
    assert speedups == sorted(speedups, reverse=True)
    assert sizes == sorted(sizes, reverse=True)
    assert api.show(tmp_path)["front"] == front
    assert f"front of time, footprint: {len(speedups)} trials" in summary_text(summary)


def test_other_drivers_have_no_front(tmp_path):
    assert api.run(campaign({"name": "random"}, 8), tmp_path)["front"] is None


@pytest.mark.parametrize(
    ("driver", "kind"),
    [
        ({"name": "coordinate_descent"}, "stuck"),
        ({"name": "cost_model", "model": "prior"}, "model"),
    ],
)
def test_what_drivers_note_is_the_same_after_going_on(driver, kind, tmp_path):
    def noted(folder):
        with SqliteStore(folder / DATABASE, readonly=True) as store:
            trials = [t.candidate.key for t in store.trials()]
            return trials, [(e.ask, e.data) for e in store.events() if e.kind == kind]

    for trials in (24, 64):
        api.run(campaign(driver, trials), tmp_path / "broken")
    api.run(campaign(driver, 64), tmp_path / "whole")
    broken, whole = noted(tmp_path / "broken"), noted(tmp_path / "whole")
    assert broken == whole
    assert whole[1]
