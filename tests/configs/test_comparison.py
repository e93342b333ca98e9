"""What evaluations are counted to, what is refused, and the plots."""

from __future__ import annotations

import io
import math
import xml.etree.ElementTree as ElementTree

import pytest
import yaml
from contracts import judged
from rich.console import Console

from kernelwright.configs.comparison import (
    _Run,
    _yardstick,
    compare_configs,
    compare_works,
    plotter,
)
from kernelwright.configs.errors import ConfigError
from kernelwright.display.scores import print_comparison
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
from kernelwright.evaluators.recorded import _MEMBERS
from kernelwright.search.efficiency import median_ratio
from kernelwright.search.laboratory.curves import plots, shortened
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
    follow = _yardstick(Plan(), [first, second])
    assert follow(first).evaluations_to(0.05) == 3
    assert follow(second).evaluations_to(0.05) == 3
    # Within 2^1.6 is a log2 speedup of 1.4, which the second screen has when it is scaled.
    assert follow(first).evaluations_to(2**1.6 - 1) == 2
    assert follow(first).at(3) == pytest.approx(1)
    assert follow(second).at(1) == pytest.approx(4)


def test_without_a_confirmed_run_nothing_is_reached():
    alone = run(trial(0, 1.0), trial(1, None))
    path = _yardstick(Plan(), [alone])(alone)
    assert path.evaluations_to(0.05) is None
    assert path.times == (math.inf, math.inf)


GEMM = ["gemm_model_evolution", "gemm_model_random"]


def test_several_targets_are_counted_and_the_first_is_the_rows(tmp_path):
    result = compare_configs(GEMM, seeds=6, within=[0.5, 0.05], budget=40)
    summary = result["summary"]
    assert (summary["within"], summary["budget"]) == (0.5, 40)
    assert [target["within"] for target in summary["targets"]] == [0.5, 0.05]
    near, close = (target["campaigns"][0]["evaluations"] for target in summary["targets"])
    assert near == [row["evaluations_to_target"] for row in result["rows"][:6]]
    pairs = zip(near, close, strict=True)
    assert all(b is None or (a is not None and a <= b) for a, b in pairs)
    assert near != close
    only = compare_configs(GEMM, seeds=6, within=0.05, budget=40)["summary"]
    assert only["campaigns"][0]["solved"] == sum(count is not None for count in close)
    files = plotter(str(tmp_path / "plots"))(result)
    assert [file.name for file in files] == ["best_at_budget.svg", "evaluations_to_target.svg"]
    for file in files:
        words = " ".join(ElementTree.parse(file).getroot().itertext())
        assert all(config in words for config in GEMM)
    first = files[0].read_bytes()
    plotter(str(tmp_path / "plots"))(result)
    assert files[0].read_bytes() == first
    (whole,) = plotter(str(tmp_path / "all.png"))(result)
    assert whole.read_bytes().startswith(b"\x89PNG")


def test_campaigns_are_called_by_what_tells_them_apart(tmp_path):
    for place, name in (("a/x", "same"), ("b/x", "same"), ("c", "other"), ("d", "d")):
        path = tmp_path / f"{place}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump({"name": name, "driver": {"name": "random"}, **MODEL}))
    configs = [str(tmp_path / f"{place}.yaml") for place in ("a/x", "b/x", "c", "d", "d")]
    summary = compare_configs(configs, seeds=1, budget=1)["summary"]
    names = [row["config"] for row in summary["campaigns"]]
    assert names == ["a/x", "b/x", "other", "d (4)", "d (5)"]
    assert summary["work"] == "matmul@1 32x32x32 on cpu-model"
    alike = compare_configs(configs[2:4], seeds=1, budget=1, overrides=["name=z"])["summary"]
    assert [row["config"] for row in alike["campaigns"]] == ["c", "d"]


def test_shortened_names_are_as_different_as_whole_ones():
    ends = ["gemm_4096_square_auto_a", "gemm_4096_square_auto_b"]
    assert shortened(ends, 40) == ends
    assert shortened(ends, 12) == ["gemm_4…uto_a", "gemm_4…uto_b"]
    middles = [f"{'same_' * 5}{c}{'_alike' * 5}" for c in "ab"]
    scattered = [f"{'x' * 9}{a}{'y' * 40}{b}{'z' * 9}" for a in "ab" for b in "cd"]
    for names in (middles, scattered):
        short = shortened(names, 12)
        assert len(set(short)) == len(names)
        assert max(map(len, short)) <= 12


SLOW_START = [{"evaluations": n, "median": 2 / n, "low": 1 / n, "high": 3 / n} for n in (8, 16)]


@pytest.mark.parametrize("length", [8, 24, 25, 300])
def test_plots_have_room_for_names_of_any_length(tmp_path, length):
    """matplotlib warns where it has not; and what it draws must lie inside of the picture."""
    names = [f"{c}{'_' * (length - 2)}{c}" for c in "ab"]
    # All that the second reached it had reached before the axis begins.
    reached = {"a": [12, 16], "b": [1]}
    campaigns = [
        {
            "config": name,
            "reached": [
                {"evaluations": n, "share": 0.5, "low": 0.2, "high": 0.8} for n in reached[name[0]]
            ],
        }
        for name in names
    ]
    summary = {
        "work": "a problem on a target",
        "within": 0.05,
        "budget": 16,
        "targets": [{"within": share, "campaigns": campaigns} for share in (0.05, 0.5)],
        "curves": [{"config": name, "best_at": SLOW_START} for name in names],
    }
    (file,) = plots(summary, tmp_path / "all.svg")
    root = ElementTree.parse(file).getroot()
    width = float(root.attrib["viewBox"].split()[2])
    words = [text for text in root.iter() if text.tag.endswith("text") and text.text]
    assert summary["work"] in [text.text for text in words]
    named = [text for text in words if text.text[0] in "ab" and text.text.strip("ab_…") == ""]
    assert len({text.text for text in named}) == 2
    # Beside every curve, or once below all.
    assert len(named) == (6 if length <= 24 else 2)
    for text in named:
        x = float(text.attrib.get("x") or text.attrib["transform"].split("(")[1].split()[0])
        # A character of this size is at least 4 wide; what is not is cut off.
        assert 0 < x < width - 4 * len(text.text) or length > 24


def test_sharing_what_runs_have_in_common_changes_no_result():
    shape = ["target.landscape=h200_gemm_512x512x16384", "problem.m=512", "problem.n=512"]
    shape.append("problem.k=16384")
    config = "gemm_h200_evolution"
    _MEMBERS.clear()
    alone = compare_configs([config, config], seeds=1, budget=8, overrides=shape)
    compare_configs(["gemm_h200_random", config], seeds=1, budget=8)
    assert len(_MEMBERS) == 2
    again = compare_configs([config, config], seeds=1, budget=8, overrides=shape)
    assert alone == again


def test_a_driver_against_itself_is_no_difference(tmp_path):
    twice = ["gemm_model_evolution"] * 2
    summary = compare_configs(twice, seeds=30, within=0.5, budget=24)["summary"]
    left, right = (row["evaluations"] for row in summary["targets"][0]["campaigns"])
    blocks = [
        median_ratio(*([25 if c is None else c for c in some[i : i + 6]] for some in (left, right)))
        for i in range(0, 30, 6)
    ]
    assert summary["pairs"][0]["difference"] is False
    assert sum(block.is_difference for block in blocks) <= 1
    # There is something to differ by.
    assert len({*left, *right}) > 5


AGENTS = ["gemm_model_llm", "gemm_model_team"]


def test_agents_are_compared_at_an_equal_budget_of_calls():
    overrides = ["budget={calls: 16}", "agents.backend={name: mock, usd_per_million: 1.0}"]
    result = compare_configs(AGENTS, seeds=2, within=0.5, overrides=overrides)
    summary = result["summary"]
    (target,) = summary["targets"]
    assert [found["cost"] for found in target["costs"]] == ["calls", "tokens", "usd"]
    assert [found["budget"] for found in target["costs"]] == [16, None, None]
    for row in result["rows"]:
        counts = [row[f"{name}_to_target"] for name in ("evaluations", "calls", "tokens", "usd")]
        assert all(count is None for count in counts) or all(count > 0 for count in counts)
        assert row["calls_to_target"] is None or row["calls_to_target"] <= 16
    first = target["costs"][0]["campaigns"][0]
    assert first["calls"] == [row["calls_to_target"] for row in result["rows"][:2]]
    # Without a number of trials curves end where the longest run does.
    assert summary["curves"][0]["best_at"][-1]["evaluations"] == summary["budget"] > 1
    console = Console(file=io.StringIO(), width=200)
    print_comparison(console, summary)
    assert "calls to 50%" in console.file.getvalue()


@pytest.mark.parametrize(
    ("configs", "budget", "found"),
    [
        (AGENTS, "{trials: 4, seconds: 5}", "seconds"),
        (AGENTS, "{usd: 1}", "costs nothing"),
        (GEMM, "{calls: 4}", "asks no model"),
    ],
)
def test_a_budget_that_ends_runs_elsewhere_or_never_is_refused(configs, budget, found):
    with pytest.raises(ConfigError, match=found) as caught:
        compare_configs(configs, seeds=1, overrides=[f"budget={budget}"])
    assert caught.value.path.startswith("budget")


def test_several_works_are_compared_together():
    works = {"large": [], "small": ["problem.m=512"]}
    result = compare_works(GEMM, works, seeds=6, within=0.5, budget=40)
    assert [*result["works"]] == ["large", "small"]
    medians = [work["summary"]["campaigns"][0]["median"] for work in result["works"].values()]
    mean = result["campaigns"][0]
    assert mean["median"] == pytest.approx(math.sqrt(math.prod(medians)))
    assert mean["low"] <= mean["median"] <= mean["high"]
    (ratio,) = result["ratios"]
    assert (ratio["left"], ratio["right"]) == (GEMM[1], GEMM[0])
    assert ratio["ci_low"] <= ratio["ratio"] <= ratio["ci_high"]
    with pytest.raises(ConfigError, match="at least one work"):
        compare_works(GEMM, {})


@pytest.mark.parametrize(
    ("call", "path"),
    [
        ({"within": [0.05, 0.0]}, "--within"),
        ({"within": []}, "--within"),
        ({"within": float("nan")}, "--within"),
        ({"seeds": 0}, "--seeds"),
        ({"budget": 0}, "--budget"),
    ],
)
def test_what_makes_no_comparison_is_refused(call, path):
    with pytest.raises(ConfigError) as caught:
        compare_configs(GEMM, **call)
    assert caught.value.path == path


def test_a_plot_that_cannot_be_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(ConfigError, match=r"ends in \.svg or \.png"):
        plotter("curves.pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="a place that can be written"):
        plotter(str(tmp_path / "file" / "plots"))


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
