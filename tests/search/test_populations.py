"""Drivers that keep more than the fastest: map_elites, pareto and the facts they stand on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts import judged
from playground import SCHEDULES, SPACE, drive, sloping

from kernelwright.env.options import OptionError
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Candidate, Directive, Knob, Language, knob_candidate
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.drivers.evolution import Evolution
from kernelwright.search.drivers.facts import Facts
from kernelwright.search.drivers.map_elites import MapElites
from kernelwright.search.drivers.pareto import Pareto
from kernelwright.search.drivers.random import Random
from kernelwright.search.fronts import crowding, front, ranks

PROBLEM = gemm_gpu(m=4096, n=4096, k=4096)
TARGET = GpuModel(PROBLEM)
GEMM = KnobSpace(PROBLEM.knobs, TARGET.constraints, default=PROBLEM.unscheduled)


def speed(candidate):
    return float(-np.log2(TARGET.true_ns([candidate])[0]))


def with_facts(trial, **facts):
    stage, verdict = trial.verdicts[0]
    told = replace(verdict, facts=tuple(facts.items()))
    return replace(trial, verdicts=((stage, told),))


# Facts


def test_facts_of_tiles():
    candidate = knob_candidate(
        {"bm": 128, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
    )
    facts = Facts(GEMM, PROBLEM).of_candidate(candidate)
    # A step loads (128 + 64) x 32 halves and does 128 x 64 x 32 multiply-adds.
    assert facts["intensity"] == 2 * 128 * 64 * 32 / (192 * 32 * 2)
    assert facts["footprint"] == 3 * 192 * 32 * 2
    assert facts["parallelism"] == 32 * 64 * 4


def test_what_a_verdict_says_is_more_exact():
    trial = judged(0, GEMM.default, 0.0)
    facts = Facts(GEMM, PROBLEM)
    assert facts.of(with_facts(trial, shared=5.0, regs=90.0))["footprint"] == 5.0
    assert facts.of(with_facts(trial, shared=5.0, regs=90.0))["regs"] == 90.0
    assert facts.of(with_facts(trial, flops=8.0, dram_bytes=2.0))["intensity"] == 4.0
    assert facts.of(trial) == facts.of_candidate(GEMM.default)


def test_facts_of_schedules():
    facts = Facts(SCHEDULES)
    plain = facts.of_candidate(SCHEDULES.default)
    lanes = (Directive("split", "j", (8,)), Directive("vectorize", "ji"))
    wide = facts.of_candidate(Candidate(Language.SCHEDULE, lanes))
    assert plain["parallelism"] == pytest.approx(1)
    assert wide["parallelism"] == pytest.approx(8)
    copies = facts.of_candidate(Candidate(Language.SCHEDULE, (Directive("unroll", "k"),)))
    assert copies["code_size"] == pytest.approx(8 * plain["code_size"])


def test_nothing_is_computed_of_other_knobs():
    assert Facts(SPACE).computed == ()
    assert Facts(SPACE).of_candidate(SPACE.candidate(0)) == {}


# MAP-Elites


def test_every_niche_keeps_its_fastest():
    driver = MapElites(GEMM, seed=0, batch=8, problem=PROBLEM)
    trials = drive(driver, 120, speed)
    best = {}
    for trial in trials:
        niche = driver.niche(trial)
        if niche not in best or trial.objective > best[niche].objective:
            best[niche] = trial
    assert len(best) > 10
    assert driver.elites == {niche: trial.candidate.key for niche, trial in best.items()}


def test_parents_are_elites_of_many_niches():
    driver = MapElites(GEMM, seed=0, batch=8, problem=PROBLEM, tournament=1, crossover=0.0)
    drive(driver, 64, speed)
    parents = {key for _ in range(8) for p in driver.ask(8) for key in p.parents}
    assert parents <= set(driver.elites.values())
    assert len(parents) > 8


def test_it_breeds_more_kinds_than_evolution():
    """A kind that is slow is not bred out."""

    def kinds(driver):
        trials = drive(driver, 96, speed)
        place = MapElites(GEMM, seed=0, batch=8, problem=PROBLEM)
        niche = {t.candidate.key: place.niche(t) for t in trials}
        return len({niche[key] for _ in range(4) for p in driver.ask(8) for key in p.parents})

    kept = MapElites(GEMM, seed=0, batch=8, problem=PROBLEM, tournament=1)
    assert kinds(kept) > 2 * kinds(Evolution(GEMM, seed=0, batch=8))


def test_axes_are_facts_or_knobs():
    assert MapElites(GEMM, seed=0, batch=8).axes == ("intensity", "footprint", "parallelism")
    assert MapElites(SPACE, seed=0, batch=8).axes == ("a", "b", "c")
    driver = MapElites(GEMM, seed=0, batch=8, axes=("warps", "regs"), factor=2.0)
    trial = judged(0, GEMM.default, 1.0)
    assert driver.niche(with_facts(trial, regs=64.0)) == (2, 6)
    assert driver.niche(trial) == (2, None)
    with pytest.raises(OptionError, match="different names") as refusal:
        MapElites(GEMM, seed=0, batch=8, axes=("regs", "regs"))
    assert refusal.value.option == "axes"


def test_wider_niches_are_fewer():
    trials = drive(Random(GEMM, seed=0, batch=8), 64, speed)
    fine, coarse = (
        MapElites(GEMM, seed=0, batch=8, problem=PROBLEM, factor=factor) for factor in (2.0, 16.0)
    )
    assert len({coarse.niche(t) for t in trials}) < len({fine.niche(t) for t in trials})


# Pareto


def test_ranks_and_crowding():
    scores = np.array([[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [3.0, 3.0], [5.0, 5.0], [2.0, 2.0]])
    assert ranks(scores).tolist() == [0, 0, 0, 1, 2, 0]
    room = crowding(np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 1.0], [4.0, 0.0]]))
    assert room.tolist() == [np.inf, 1.5, 1.5, np.inf]
    assert crowding(np.array([[1.0, 1.0]] * 3)).tolist().count(0.0) == 1


def test_the_front_is_what_no_other_trial_beats():
    times, shared = [3.0, 2.0, 1.0, 2.5], [10.0, 5.0, 20.0, 12.0]
    trials = [
        with_facts(judged(i, SPACE.candidate(int(SPACE.valid[i])), -t), shared=s)
        for i, (t, s) in enumerate(zip(times, shared, strict=True))
    ]
    trials.append(judged(4, SPACE.candidate(int(SPACE.valid[4])), None))
    trials.append(judged(5, SPACE.candidate(int(SPACE.valid[5])), 0.5))  # tells no shared
    trials.append(with_facts(judged(6, SPACE.candidate(int(SPACE.valid[6])), -2.0), shared=5.0))
    assert [t.number for t in front(trials, ("time", "shared"))] == [5, 2, 1]
    assert [t.number for t in front(trials, ("time",))] == [5]
    assert front([], ("time",)) == []


def hypervolume(trials, facts):
    """What the front of time and footprint dominates, in log units, below fixed corners."""
    points = sorted(
        (-t.objective, np.log2(facts.of(t)["footprint"])) for t in trials if t.objective is not None
    )
    area, least = 0.0, 18.0
    for time, size in points:
        if size < least:
            area += (28.0 - time) * (least - size)
            least = size
    return area


def test_it_finds_a_better_front_than_evolution_and_chance():
    facts = Facts(GEMM, PROBLEM)

    def found(make):
        return np.mean([hypervolume(drive(make(s), 160, speed), facts) for s in range(4)])

    pareto = found(lambda s: Pareto(GEMM, seed=s, batch=8, problem=PROBLEM))
    assert pareto > found(lambda s: Random(GEMM, seed=s, batch=8))
    assert pareto > found(lambda s: Evolution(GEMM, seed=s, batch=8))


def test_its_population_begins_with_the_front_and_its_parents_favour_it():
    driver = Pareto(GEMM, seed=0, batch=8, problem=PROBLEM, population=80)
    trials = drive(driver, 80, speed)
    facts = Facts(GEMM)
    known = {t.candidate.key: (t.objective, facts.of(t)["footprint"]) for t in trials}
    best = {known[t.candidate.key] for t in front(trials, ("time", "footprint"), facts.of)}
    parents = [key for _ in range(8) for p in driver.ask(8) for key in p.parents]
    # Configurations that are equal in both may all be there.
    count = sum(scores in best for scores in known.values())
    first = [GEMM.candidate(handle).key for handle in driver._handles[:count]]
    assert {known[key] for key in first} == best
    assert sum(known[key] in best for key in parents) / len(parents) > count / len(trials)


def test_what_is_meant_by_default_does_not_disturb_where_nobody_tells_it():
    one, other = (
        Pareto(SPACE, seed=1, batch=8, **given) for given in ({"objectives": ("time",)}, {})
    )
    wanted = [t.candidate for t in drive(one, 48)]
    assert [t.candidate for t in drive(other, 48, sloping)] == wanted
    assert other.stopped is None


@pytest.mark.parametrize(
    ("option", "make"),
    [
        ("objectives", lambda *names: Pareto(SPACE, seed=1, batch=8, objectives=("time", *names))),
        ("axes", lambda *names: MapElites(SPACE, seed=1, batch=8, axes=("a", *names))),
    ],
)
def test_a_fact_that_no_trial_has_stops_the_driver(option, make):
    """Not before something ran; and one trial that has it is enough."""
    first, second, third = (SPACE.candidate(int(i)) for i in SPACE.valid[:3])
    failed = judged(0, first, None)
    with_regs = with_facts(judged(1, second, 1.0), regs=40.0, spills=0.0)
    misspelt, right = make("rges"), make("regs")
    for driver in (misspelt, right):
        driver.tell([failed])
        assert driver.stopped is None
        assert len(driver.ask(8)) == 8
        driver.tell([with_regs, judged(2, third, 1.0)])
    assert right.stopped is None
    assert misspelt.ask(8) == []
    expected = f"{option}: expected facts that there are (regs, spills), found 'rges'"
    assert misspelt.stopped == f"{expected}, which no trial that ran has; did you mean 'regs'?"
    bare = make("regs")
    bare.tell([judged(0, first, 1.0)])
    assert "no fact, as there is none" in bare.stopped


def test_objectives_are_different():
    with pytest.raises(OptionError, match="different names"):
        Pareto(SPACE, seed=0, batch=8, objectives=("time", "time"))


def test_a_knob_named_like_an_axis_is_used_by_level():
    space = KnobSpace([Knob("x", (100, 200, 300))])
    driver = MapElites(space, seed=0, batch=1)
    assert driver.niche(judged(0, knob_candidate({"x": 300}), 0.0)) == (2,)


@pytest.mark.parametrize("values", [(0, 8), ("x", 8), (-4, 8)])
@pytest.mark.parametrize("driver", [MapElites, Pareto])
def test_knobs_that_are_only_named_like_tiles_are_no_tiles(driver, values):
    space = KnobSpace([Knob("bm", values), Knob("bn", (0, 8, 16)), Knob("bk", (2, 4))])
    assert Facts(space).computed == ()
    assert len(drive(driver(space, seed=0, batch=4), 12, lambda c: float(c.knobs["bn"]))) == 12
