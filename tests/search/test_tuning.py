"""The tuning cache: what its files promise, and what a campaign is served from them."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from toys import ToyJudge, c, plan, run

from kernelwright.env.objective import log2_speedup
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Conditions,
    Evidence,
    ExtentRange,
    Knob,
    Language,
    Measurement,
    ProcessPair,
    Stage,
    Status,
    Unpaired,
    Verdict,
    Workload,
    knob_candidate,
)
from kernelwright.evaluators.statistics import speedup
from kernelwright.search.drivers.grid import Grid
from kernelwright.search.plan import Baseline, Budget, ConfirmPlan
from kernelwright.search.seeded import Seed
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import Trial
from kernelwright.search.tuning.cache import TuningCache, choice_line
from kernelwright.search.tuning.identity import completed, identity
from kernelwright.search.tuning.key import TuningKey, octaves, spans
from kernelwright.search.tuning.near import near
from kernelwright.search.tuning.record import Record, verdict_data
from kernelwright.search.tuning.serving import (
    ALL,
    CACHE,
    FAILURES,
    LOST,
    SERVED,
    Serving,
    Terms,
    records_of,
)
from kernelwright.search.tuning.warm import WarmStart

KEY = TuningKey(
    problem="toy@1",
    tensors="float32 x[n] -> float32 y[n]",
    computes="0",
    workloads=((("n", 8, 8),),),
    target="toy",
    device="this machine",
    toolchain="gcc 12",
    options="{}",
    judge="{}",
)


def verdict(status=Status.OK, ns=5.0, code=None, reference="r"):
    if not status.passed:
        return Verdict(status, code or "some_code")
    samples = Unpaired((ns,), (10.0,))
    parts = ("toy", CacheState.COLD, Evidence.MODELLED, "toy")
    return Verdict(status, measurements=(Measurement("w", "baseline", reference, samples, *parts),))


def record(number, status=Status.OK, stage=Stage.SCREEN, **fields):
    found = verdict(status)
    given = {
        "means": f"knobs:{json.dumps({'a': number})}",
        "baseline": 'knobs:{"a":10}',
        "candidate": knob_candidate({"a": number}),
        "objective": log2_speedup(found) if status.passed else None,
        "verdicts": ((stage, verdict_data(found)),),
        "run": "r",
        "trial": number,
        "at": 1.0,
    }
    return Record(**given | fields)


# Files


def test_what_is_appended_is_read_back_and_said_once(tmp_path):
    cache, records = TuningCache(tmp_path), [record(n) for n in range(3)]
    assert cache.read(KEY).trials == ()
    assert cache.append(KEY, [r.to_line() for r in records]) == 3
    again = [replace(r, run="another", at=2.0, trial=9).to_line() for r in records]
    assert cache.append(KEY, [*again, record(3).to_line(), choice_line({"x": 1}, "r", 1.0)]) == 2
    found = cache.read(KEY)
    assert found.trials == (*records, record(3))
    assert found.trials[0].verdict(Stage.SCREEN) == verdict()
    assert (found.choices, found.faults) == (({"x": 1},), ())
    assert list(cache.known()) == list(cache.known("toy@1")) == [KEY]
    assert list(cache.known("toy@2")) == []


@pytest.mark.parametrize(
    "other",
    [
        {"problem": "toy@2"},
        {"workloads": ((("n", 9, 9),),)},
        {"device": "another machine"},
        {"toolchain": "gcc 13"},
        {"target": "another"},
        {"judge": '{"state":"warm"}'},
        {"options": '{"threads":2}'},
        {"seed": 1},
        {"files": (("table", "00"),)},
    ],
)
def test_every_part_of_a_key_has_records_of_its_own(tmp_path, other):
    cache = TuningCache(tmp_path)
    cache.append(KEY, [record(1).to_line()])
    assert cache.read(replace(KEY, **other)).trials == ()
    assert TuningKey.from_json(json.loads(json.dumps(KEY.to_json()))) == KEY


def test_a_line_of_another_device_is_refused_wherever_it_stands(tmp_path):
    cache, other = TuningCache(tmp_path), replace(KEY, device="another machine")
    cache.append(KEY, [record(1).to_line()])
    cache.append(other, [record(2).to_line()])
    with cache.path(KEY).open("a") as file:
        file.write(cache.path(other).read_text())
    found = cache.read(KEY)
    assert [r.trial for r in found.trials] == [1]
    assert len(found.faults) == 2
    assert "another key" in found.faults[0]
    # A whole file under another's name has nothing that is believed.
    cache.path(KEY).write_text(cache.path(other).read_text())
    assert cache.read(KEY).trials == ()
    assert list(cache.known()) == [other]


DAMAGE = [
    lambda text: text[:-20],
    lambda text: text.replace('"objective":1.0', '"objective":2.0', 1),
    lambda text: text + "no json\n",
    lambda text: text + '{"kind":"trial"}\n',
    lambda text: text + "\x00" * 30,
]


@pytest.mark.parametrize("place", range(len(DAMAGE)))
def test_a_damaged_line_is_reported_and_no_other_is_lost(tmp_path, place):
    cache = TuningCache(tmp_path)
    cache.append(KEY, [record(n).to_line() for n in range(4)])
    path = cache.path(KEY)
    path.write_text(DAMAGE[place](path.read_text()))
    found = cache.read(KEY)
    assert len(found.trials) >= 3
    assert len(found.faults) == 1
    assert f"{path}:" in found.faults[0]
    # The next writer closes a line that was cut off, and what was lost can be written again.
    assert cache.append(KEY, [record(n).to_line() for n in range(5)]) == 5 - len(found.trials)
    assert {r.trial for r in cache.read(KEY).trials} == {0, 1, 2, 3, 4}
    assert len(cache.read(KEY).faults) == 1


APPENDING = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
sys.path.insert(0, {here!r})
from test_tuning import KEY, record
from kernelwright.search.tuning.cache import TuningCache
first = int(sys.argv[2])
cache = TuningCache(Path(sys.argv[1]))
for n in range(first, first + 40):
    cache.append(KEY, [record(n).to_line(), record(1000 + n % 5).to_line()])
"""


def test_processes_that_append_at_once_lose_nothing_and_repeat_nothing(tmp_path, request):
    here = request.path.parent
    code = APPENDING.format(tests=str(here.parent), here=str(here))
    command = [sys.executable, "-P", "-c", code, str(tmp_path)]
    children = [subprocess.Popen([*command, str(first)]) for first in (0, 40)]
    assert [child.wait(60) for child in children] == [0, 0]
    found = TuningCache(tmp_path).read(KEY)
    assert found.faults == ()
    assert sorted(r.trial for r in found.trials) == [*range(80), *range(1000, 1005)]


def test_a_snapshot_is_a_prefix_whatever_is_added(tmp_path):
    cache = TuningCache(tmp_path)
    cache.append(KEY, [record(1).to_line()])
    then = cache.read(KEY)
    cache.append(KEY, [record(2).to_line()])
    assert cache.read(KEY, then.size) == then
    assert len(cache.read(KEY).trials) == 2


# Meaning


def test_knobs_that_stand_for_the_same_schedule_mean_the_same():
    problem = matmul(m=64, n=64, k=64)
    knobs = dict(problem.unscheduled)
    one = identity(problem, knob_candidate(knobs))
    assert one == identity(problem, Candidate(Language.SCHEDULE, problem.sketch(knobs)))
    assert one != identity(problem, knob_candidate({**knobs, "mr": 2}))


TEMPLATE = """
#ifndef STEP
#  define STEP 2
#endif
void f(void) { use(STEP, TILE); }
"""


def test_a_macro_at_the_text_s_own_fallback_may_as_well_be_left_out():
    problem = replace(matmul(m=8, n=8, k=8), template=TEMPLATE)

    def means(**knobs):
        return identity(problem, knob_candidate(knobs))

    assert means(TILE=4) == means(TILE=4, STEP=2) != means(TILE=4, STEP=1)
    edited = replace(problem, template=TEMPLATE.replace("use", "use2"))
    assert identity(edited, knob_candidate({"TILE": 4})) != means(TILE=4)


def test_a_knob_that_a_record_lacks_has_its_declared_default():
    problem = gemm_gpu()
    known = identity(problem, knob_candidate({"bm": 64}))
    assert completed(known, {"bm": 16, "x": 0}) == identity(
        problem, knob_candidate({"bm": 64, "x": 0})
    )
    assert completed("schedule:00", {"x": 0}) == "schedule:00"


# Serving


def means(candidate):
    return "knobs:" + json.dumps(candidate.knobs, sort_keys=True, separators=(",", ":"))


def terms(space, base, *, deterministic=True, defaults=None):
    return Terms(
        identify=means,
        belongs=lambda candidate: not space.check(candidate),
        baseline=base,
        defaults=defaults or {},
        deterministic=deterministic,
    )


class Toy:
    """Grid searches of a space of toy knobs with one cache between them."""

    def __init__(self, folder):
        self.cache = TuningCache(folder)

    def search(self, judge=None, *, values=(8, 9, 10, 11, 12, 13), more=(), base=None, **fields):
        knobs = [Knob("a", values), Knob("b", (1, 2)), *more]
        space = KnobSpace(knobs, fields.pop("constraints", ()))
        base = base or knob_candidate({"a": 10, "b": 1, **{k.name: k.values[0] for k in more}})
        judge = judge or ToyJudge()
        defaults = {knob.name: knob.values[0] for knob in more}
        looked_up = terms(space, base, deterministic=judge.deterministic, defaults=defaults)
        store = fields.pop("store", None) or MemoryStore()
        the_plan = plan(
            judge=judge,
            space=space,
            baseline=Baseline("unscheduled", base),
            make_driver=lambda: Grid(space, seed=0, batch=4),
            budget=Budget(trials=200),
            confirm=ConfirmPlan(finalists=1),
            serving=Serving(self.cache.read(KEY), looked_up),
            **fields,
        )
        run(the_plan, store)
        served = frozenset(e.slot for e in store.events() if e.kind == SERVED)
        records = records_of(store.trials(), served, means, base, run="r", at=1.0)
        self.cache.append(KEY, [record.to_line() for record in records])
        self.opening = next(e.data for e in store.events() if e.kind == CACHE)
        self.served, self.store = served, store
        # What was screened, less the one that says whether the cache still holds.
        screens = [str(cand) for stage, _, cand in judge.asked if stage is Stage.SCREEN]
        self.screened = screens[1:] if self.opening["records"] else screens
        return self


@pytest.fixture
def toy(tmp_path):
    return Toy(tmp_path)


def test_a_search_of_what_is_known_measures_nothing_again(toy):
    first = toy.search().store.trials()
    assert (len(toy.screened), toy.served) == (12, frozenset())
    toy.search()
    assert (toy.screened, len(toy.served), toy.opening["serves"]) == ([], 12, ALL)
    assert [t.objective for t in toy.store.trials()] == [t.objective for t in first]
    assert toy.store.trials()[0].verdicts[0][1] == first[0].verdicts[0][1]
    assert sum(t.status is Status.CRASHED for t in toy.store.trials()) == 2


def test_an_added_value_measures_only_what_is_new(toy):
    toy.search()
    toy.search(values=(8, 9, 10, 11, 12, 13, 14))
    assert toy.screened == ["a=14 b=1", "a=14 b=2"]
    assert len(toy.store.trials()) == 14


def test_fewer_values_and_other_orders_measure_nothing(toy):
    toy.search()
    toy.search(values=(13, 10, 8))
    assert (toy.screened, len(toy.served)) == ([], 6)


def test_an_added_knob_measures_only_what_is_not_at_its_default(toy):
    toy.search()
    toy.search(more=[Knob("x", (0, 1))])
    assert len(toy.store.trials()) == 24
    assert len(toy.screened) == 12
    assert all("x=1" in name for name in toy.screened)
    # The baseline is named by the key that it has today.
    base = knob_candidate({"a": 10, "b": 1, "x": 0})
    trial = next(t for t in toy.store.trials() if t.candidate == base)
    assert trial.verdicts[0][1].measurements[0].reference_key == base.key


def test_values_that_were_recorded_do_not_depend_on_defaults(toy):
    toy.search(more=[Knob("x", (0, 1))])
    toy.search(more=[Knob("x", (1, 0))], base=knob_candidate({"a": 10, "b": 1, "x": 0}))
    assert toy.screened == []


def test_over_another_baseline_only_failures_are_served(toy):
    toy.search()
    toy.search(base=knob_candidate({"a": 8, "b": 1}))
    assert toy.opening["serves"] == FAILURES
    assert len(toy.served) == 2
    assert {t.status for t in toy.store.trials() if t.number in toy.served} == {Status.CRASHED}


def test_records_that_the_judge_does_not_repeat_are_not_served(toy):
    toy.search()

    class Faster(ToyJudge):
        def judge(self, request):
            found = super().judge(request)
            moved = [replace(m, samples=Unpaired((1.0,), (10.0,))) for m in found.measurements]
            return replace(found, measurements=tuple(moved))

    toy.search(Faster())
    assert toy.opening["serves"] == FAILURES
    assert "do not hold" in toy.opening["reason"]
    assert len(toy.served) == 2


class Clock(ToyJudge):
    """A judge whose times are measured: they differ a little from sitting to sitting."""

    deterministic = False
    evidence = Evidence.MEASURED

    def __init__(self, factor=1.0, status=Status.CRASHED):
        super().__init__()
        self.factor, self.status = factor, status

    def judge(self, request):
        found = super().judge(request)
        if not found.status.passed:
            return Verdict(self.status, "unlucky")
        time = self.factor * 100 / request.candidate.knobs["a"]
        moved = [
            replace(m, samples=Unpaired((time,), (10.0,)), evidence=Evidence.MEASURED)
            for m in found.measurements
        ]
        return replace(found, measurements=tuple(moved), floors_ns=())


def test_measured_times_are_served_while_the_best_still_has_its_ratio(toy):
    toy.search(Clock())
    confirmed = Clock(1.05)
    toy.search(confirmed)
    assert (toy.screened, len(toy.served), toy.opening["serves"]) == ([], 12, ALL)
    # The claim is a fresh one.
    stages = [stage for stage, _, _ in confirmed.asked]
    assert Stage.CONFIRM in stages
    best = next(t for t in toy.store.trials() if t.verdict(Stage.CONFIRM))
    assert best.number in toy.served
    assert best.verdict(Stage.CONFIRM).measurements[0].samples.candidate_ns == (1.05 * 100 / 12,)


def test_measured_times_of_another_world_are_not_served(toy):
    toy.search(Clock())
    toy.search(Clock(1.3))
    assert toy.opening["serves"] == FAILURES
    assert (len(toy.screened), len(toy.served)) == (10, 2)


def test_what_was_claimed_says_what_holds_not_the_luckiest_screen(tmp_path):
    cache, space = TuningCache(tmp_path), KnobSpace([Knob("a", (1, 2, 10))])
    claim = (Stage.CONFIRM, verdict_data(verdict(Status.WIN)))
    claimed = record(1, objective=1.1)
    lucky = record(2, objective=3.0)
    claimed = replace(claimed, verdicts=(*claimed.verdicts, claim))
    cache.append(KEY, [claimed.to_line(), lucky.to_line()])
    base = knob_candidate({"a": 10})
    serving = Serving(cache.read(KEY), terms(space, base, deterministic=False))
    assert serving.probe().candidate == claimed.candidate
    assert serving.opening(verdict(ns=5.2))["serves"] == ALL
    assert serving.opening(verdict(ns=6.0))["serves"] == FAILURES
    assert Serving(cache.read(KEY), terms(space, base)).probe().candidate == lucky.candidate


@pytest.mark.parametrize(("spread", "serves"), [(0.8, ALL), (0.02, FAILURES), (2.0, FAILURES)])
def test_a_ratio_may_be_anywhere_in_a_claim_s_interval_unless_it_is_wide(tmp_path, spread, serves):
    times = [5.0 * 2 ** (spread * (i % 5 - 2) / 2) for i in range(20)]
    pairs = tuple(
        ProcessPair(Arm.CANDIDATE, tuple(Arm), ((time, 10.0), (time, 10.0))) for time in times
    )
    claim = verdict(Status.WIN)
    (m,) = claim.measurements
    claim = replace(claim, measurements=(replace(m, samples=pairs),))
    screened = record(1)
    known = replace(screened, verdicts=(*screened.verdicts, (Stage.CONFIRM, verdict_data(claim))))
    cache, space = TuningCache(tmp_path), KnobSpace([Knob("a", (1, 10))])
    cache.append(KEY, [known.to_line()])
    found = terms(space, knob_candidate({"a": 10}), deterministic=False)
    # The claim is 2.0; of the widest interval 2.3 is inside, too.
    assert (speedup(claim).high > 2.3) == (spread > 0.5)
    opening = Serving(cache.read(KEY), found).opening(verdict(ns=10.0 / 2.3))
    assert opening["serves"] == serves


def test_another_clock_is_another_world(tmp_path):
    def screened(hz):
        pair = ProcessPair(Arm.CANDIDATE, tuple(Arm), ((5.0, 10.0),), (Conditions(hz, 0.0, 0),))
        (m,) = verdict().measurements
        return replace(verdict(), measurements=(replace(m, samples=(pair,)),))

    cache, space = TuningCache(tmp_path), KnobSpace([Knob("a", (1, 10))])
    then = ((Stage.SCREEN, verdict_data(screened(4e9))),)
    cache.append(KEY, [record(1, verdicts=then).to_line()])
    found = terms(space, knob_candidate({"a": 10}), deterministic=False)
    serving = Serving(cache.read(KEY), found)
    assert serving.opening(screened(3.9e9))["serves"] == ALL
    assert serving.opening(screened(3e9))["serves"] == FAILURES
    assert "3.00 GHz" in serving.opening(screened(3e9))["reason"]


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.TOO_FAST, Status.OVER_LIMIT])
def test_a_failure_that_may_be_the_host_s_is_judged_again(toy, status):
    toy.search(Clock(status=status))
    toy.search(Clock(status=status))
    assert sorted(toy.screened) == ["a=13 b=1", "a=13 b=2"]


def test_what_is_about_the_host_alone_is_not_kept():
    trials = MemoryStore()
    run(plan(judge=Clock(status=Status.BROKEN), budget=Budget(trials=20)), trials)
    records = records_of(trials.trials(), frozenset(), means, c(10), run="r", at=1.0)
    assert len(records) == 20 - sum(t.status is Status.BROKEN for t in trials.trials()) < 20


def test_what_failed_once_is_not_believed_again(tmp_path):
    cache, space = TuningCache(tmp_path), KnobSpace([Knob("a", (1, 2, 10))])
    cache.append(KEY, [record(1).to_line(), record(2).to_line()])
    late = record(2, Status.WRONG, Stage.CONFIRM, objective=1.0)
    cache.append(KEY, [late.to_line()])
    serving = Serving(cache.read(KEY), terms(space, knob_candidate({"a": 10})))
    assert serving.probe().candidate == knob_candidate({"a": 1})
    assert serving.find(knob_candidate({"a": 1})) is None  # nothing before it is decided
    serving.begin(serving.opening(verdict()))
    assert serving.find(knob_candidate({"a": 1})).objective == 1.0
    assert serving.find(knob_candidate({"a": 2})).verdict.status is Status.WRONG
    assert serving.find(knob_candidate({"a": 10})) is None


def test_a_cache_that_is_gone_serves_nothing_and_says_so(tmp_path):
    toy, store = Toy(tmp_path), MemoryStore()
    toy.search()
    space, base = KnobSpace([Knob("a", (8, 9)), Knob("b", (1, 2))]), c(10)
    gone = Serving(toy.cache.read(KEY), terms(space, base), lost="it was removed")
    store.record(events=[next(e for e in toy.store.events() if e.kind == CACHE)])
    the_plan = plan(
        judge=ToyJudge(),
        space=space,
        baseline=Baseline("unscheduled", base),
        make_driver=lambda: Grid(space, seed=0, batch=4),
        serving=gone,
    )
    run(the_plan, store)
    kinds = [e.kind for e in store.events()]
    assert LOST in kinds
    assert SERVED not in kinds
    assert len(store.trials()) == 4


# Near keys


def trial_of(candidate, objective):
    found = verdict(Status.CRASHED if objective is None else Status.OK)
    return Trial(0, candidate, ((Stage.SCREEN, found),), objective, "p", (), 0, 0)


def test_seeds_whose_source_misleads_are_asked_no_more():
    good, bad = "good", "bad"
    start = WarmStart(tuple(Seed(c(i), s) for i, s in enumerate([good, bad, good, bad])))
    assert [s.candidate for s in start.next(2, [])] == [c(0)]
    assert [s.candidate for s in start.next(8, [])] == [c(0), c(1), c(2), c(3)]
    told = [trial_of(c(0), 2.0), trial_of(c(1), 1.0)]
    assert [s.candidate for s in start.next(8, told)] == [c(2)]
    failed = [trial_of(c(0), 2.0), trial_of(c(1), None)]
    assert [s.candidate for s in start.next(8, failed)] == [c(2)]
    # What the driver found itself drops what is far behind it.
    assert start.next(8, [*told, trial_of(c(9), 3.0)]) == []
    event = start.found()
    assert WarmStart.of_event(event) == start


def workload(n):
    return Workload((("n", n),))


def test_trials_of_near_keys_come_the_nearest_first_and_the_fastest_first(tmp_path):
    problem = gemm_gpu()
    text = "float16 A[m, k], float16 B[k, n] -> float16 C[m, n]"
    here = replace(KEY, problem=problem.identity, tensors=text, workloads=(wide(64),))
    cache = TuningCache(tmp_path)
    places = {
        "here": here,
        "half": replace(here, workloads=(wide(32),)),
        "far": replace(here, workloads=(wide(2048),)),
        "abroad": replace(here, device="another machine"),
        "version": replace(here, problem="gemm_gpu@2"),
        "dtype": replace(here, tensors="another"),
    }
    for number, key in enumerate(places.values()):
        lines = [record(10 * number + i, objective=float(i)).to_line() for i in (1, 2)]
        failed = record(10 * number + 9, Status.CRASHED).to_line()
        cache.append(key, [*lines, failed])
    asked = Workload((("m", 64), ("n", 64), ("k", 64)))
    found = list(near(problem, asked, "this machine", folder=tmp_path))
    assert [(n.payload[0][1], n.log2_speedup, n.distance) for n in found] == [
        (2, 2.0, 0.0),
        (1, 1.0, 0.0),
        (12, 2.0, 3.0),
        (11, 1.0, 3.0),
        (32, 2.0, 4.0),
        (31, 1.0, 4.0),
        (22, 2.0, 15.0),
        (21, 1.0, 15.0),
    ]
    assert found[2].extents == {"m": 32, "n": 32, "k": 32}
    assert found[4].device == "another machine"
    told = list(near(problem, asked, "this machine", folder=tmp_path, failed=True))
    assert told[2].log2_speedup is None
    assert not list(near(problem, asked, "this machine", folder=tmp_path / "none"))


def wide(size):
    return tuple((name, size, size) for name in ("m", "n", "k"))


def test_ranges_are_taken_at_their_middle():
    ranged = spans(Workload((("n", ExtentRange(16, 64)),)))
    assert octaves(ranged, spans(workload(32))) == 0.0
    assert octaves(ranged, spans(Workload((("m", 32),)))) is None


def test_a_file_whose_key_was_damaged_is_found_again_after_the_next_writer(tmp_path):
    cache = TuningCache(tmp_path)
    cache.append(KEY, [record(1).to_line()])
    path = cache.path(KEY)
    path.write_text(path.read_text()[40:])
    assert list(cache.known()) == []
    # Also by one that has nothing new to say.
    assert cache.append(KEY, [record(1).to_line()]) == 0
    assert list(cache.known()) == [KEY]
    assert [r.trial for r in cache.read(KEY).trials] == [1]
    before = path.read_bytes()
    assert cache.append(KEY, [record(1).to_line()]) == 0
    assert path.read_bytes() == before


def sampled(number, *times):
    found = verdict()
    measured = replace(found.measurements[0], samples=Unpaired(times, (10.0,)))
    screen = (Stage.SCREEN, verdict_data(replace(found, measurements=(measured,))))
    return replace(record(number), verdicts=(screen,))


@pytest.mark.parametrize(
    ("pairs", "may_cut", "deterministic", "served"),
    [
        (5, False, True, {2}),
        (5, True, True, {1, 2, 3}),
        (1, False, True, {3}),
        (3, True, True, {1, 3}),
        (9, True, True, {1, 2}),
        (5, False, False, {1, 2, 3}),
    ],
)
def test_a_screen_of_so_many_samples_is_served_to_those_that_take_as_many(
    tmp_path, pairs, may_cut, deterministic, served
):
    cache, space = TuningCache(tmp_path), KnobSpace([Knob("a", (1, 2, 3, 10))])
    records = [sampled(1, 5.0, 5.0, 5.0), sampled(2, 5.0, 5.0, 5.0, 5.0, 5.0), sampled(3, 5.0)]
    cache.append(KEY, [r.to_line() for r in records])
    base = terms(space, knob_candidate({"a": 10}), deterministic=deterministic)
    serving = Serving(cache.read(KEY), replace(base, pairs=pairs, may_cut=may_cut))
    serving.begin({"serves": ALL})
    found = {n for n in (1, 2, 3) if serving.find(knob_candidate({"a": n})) is not None}
    assert found == served
    assert serving.probe().candidate.knobs["a"] in served


def test_what_a_full_disk_does_not_take_whole_is_not_kept_in_part(tmp_path, monkeypatch):
    cache = TuningCache(tmp_path)
    cache.append(KEY, [record(1).to_line()])
    before = cache.path(KEY).read_bytes()
    room, write = [40], os.write

    def until_full(handle, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(handle, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", until_full)
    with pytest.raises(OSError, match="No space"):
        cache.append(KEY, [record(2).to_line()])
    monkeypatch.undo()
    assert cache.path(KEY).read_bytes() == before
    assert cache.append(KEY, [record(2).to_line()]) == 1
    assert cache.read(KEY).faults == ()
