"""What evaluations are counted to where no landscape says what the best time is."""

from __future__ import annotations

import pytest
import yaml
from contracts import judged

from kernelwright.configs.comparison import _evaluations_to, _Run, _yardstick, compare_configs
from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Role,
    Stage,
    Status,
    Verdict,
    knob_candidate,
)
from kernelwright.search.trial import Trial

MODEL = {
    "problem": {"name": "matmul", "m": 32, "n": 32, "k": 32},
    "space": {"kind": "schedule"},
    "target": {"name": "cpu-model"},
    "budget": {"trials": 6},
}


def written(tmp_path, name, driver):
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"name": name, "driver": {"name": driver}, **MODEL}))
    return str(path)


def test_on_a_model_of_an_open_space_the_best_is_what_any_run_tried(tmp_path):
    configs = [written(tmp_path, "a", "evolution"), written(tmp_path, "b", "random")]
    result = compare_configs(configs, seeds=6)
    counts = [row["evaluations_to_target"] for row in result["rows"]]
    assert len(counts) == 12
    assert any(count is not None for count in counts)
    best = max(result["rows"], key=lambda row: row["best"]["speedup"])
    assert best["evaluations_to_target"] is not None


class Clock:
    """A target that measures."""

    deterministic = False


class Plan:
    """What a yardstick looks at."""

    space, target = None, Clock()


def trial(number, objective, confirmed=None):
    found = judged(number, knob_candidate({"a": number}), objective)
    if confirmed is None:
        return found
    pair = ProcessPair(Arm.CANDIDATE, (Arm.CANDIDATE, Arm.REFERENCE), ((1.0, 2.0**confirmed),))
    state, evidence = CacheState.COLD, Evidence.MEASURED
    m = Measurement("w", Role.BASELINE, "k", (pair, pair), "c", state, evidence, "m")
    verdict = Verdict(Status.WIN, measurements=(m,))
    return Trial(
        number,
        found.candidate,
        (*found.verdicts, (Stage.CONFIRM, verdict)),
        objective,
        "test",
        (),
        0,
        1,
    )


def run(*trials):
    return _Run("c", 0, Clock(), list(trials))


def test_where_times_are_measured_it_is_the_best_confirmed_by_any_run():
    # The first run's screens promise 0.5 more than its confirmation holds.
    first = run(trial(0, 1.0), trial(1, 2.0), trial(2, 3.5, confirmed=3.0))
    second = run(trial(0, 1.0), trial(1, None), trial(2, 2.96), trial(3, 2.99, confirmed=2.99))
    evaluations = _yardstick(Plan(), [first, second], within=0.05)
    assert evaluations(first) == 3
    assert evaluations(second) == 3
    assert _evaluations_to(first, 1.4) == 2


def test_without_a_confirmed_run_nothing_is_reached():
    alone = run(trial(0, 1.0), trial(1, None))
    assert _yardstick(Plan(), [alone], within=0.05)(alone) is None
    assert _evaluations_to(alone, 0.0) is None


@pytest.mark.cc
def test_campaigns_on_the_cpu_are_compared(tmp_path):
    overrides = [
        "target={name: cpu, flags: [-O1]}",
        "budget={trials: 2}",
        "judge={screen: {pairs: 1}, confirm: {finalists: 1, process_pairs: 2, pairs: 1}}",
    ]
    configs = [written(tmp_path, "a", "random"), written(tmp_path, "b", "random")]
    result = compare_configs(configs, seeds=1, overrides=overrides)
    assert [row["best"]["evidence"] for row in result["rows"]] == ["measured", "measured"]
    assert "nothing can be said" in result["summary"]["pairs"][0]["says"]
