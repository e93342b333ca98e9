"""What every driver, evaluator and store must do: subclass a contract and give it the thing.

A contract's tests are collected through its subclasses only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernelwright.env.objective import log2_speedup
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    Candidate,
    Evidence,
    Proposal,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Verdict,
    knob_candidate,
)
from kernelwright.search.driver import Driver
from kernelwright.search.store import Sitting, Store
from kernelwright.search.trial import Trial, event


def judged(
    number: int, candidate: Candidate, objective: float | None, ask: int = 0, **said: Any
) -> Trial:
    """A trial with a made-up verdict of that objective; ``said`` is what else stands in it."""
    from kernelwright.env.types import CacheState, Measurement, Unpaired

    if objective is None:
        verdict = Verdict(Status.BUILD_ERROR, **{"code": "made_up", **said})
    else:
        samples = Unpaired((1.0,), (2.0**objective,), reference_exact=True)
        verdict = Verdict(
            Status.OK,
            measurements=(
                Measurement(
                    "w", Role.BASELINE, "k", samples, "c", CacheState.COLD, Evidence.MODELLED, "m"
                ),
            ),
            **said,
        )
    return Trial(number, candidate, ((Stage.SCREEN, verdict),), objective, "test", (), 0, ask)


def slope(space: KnobSpace, candidate: Candidate) -> float | None:
    """A made-up objective with one top; some configurations fail."""
    index = space.index(candidate)
    if index % 11 == 3:
        return None
    levels = space.levels[index]
    return float(-np.abs(levels - np.array(space.shape) // 2).sum())


def at_once(trials: Sequence[Trial]) -> list[Sequence[Trial]]:
    return [trials]


def one_by_one(trials: Sequence[Trial]) -> list[Sequence[Trial]]:
    return [[trial] for trial in trials]


def in_odd_pieces(trials: Sequence[Trial]) -> list[Sequence[Trial]]:
    return [trials[:3], [], trials[3:]]


CHUNKINGS = (one_by_one, in_odd_pieces)


def trajectory(
    driver: Driver,
    batch: int,
    count: int,
    value: Callable[[Candidate], float | None],
    told: Callable[[Sequence[Trial]], list[Sequence[Trial]]] = at_once,
) -> list[tuple[Proposal, ...]]:
    """What a driver proposes up to some trials, told in pieces of their order."""
    asked: list[tuple[Proposal, ...]] = []
    number = 0
    while number < count and (proposals := driver.ask(batch)):
        trials = [
            judged(number + i, p.candidate, value(p.candidate)) for i, p in enumerate(proposals)
        ]
        for piece in told(trials):
            driver.tell(piece)
        number += len(trials)
        asked.append(tuple(proposals))
    return asked


class DriverContract:
    """A driver proposes valid, fresh candidates, is a pure function, and says why it stops."""

    space: KnobSpace

    def make(self, seed: int, batch: int) -> Driver:
        raise NotImplementedError

    def play(
        self, seed: int, batch: int, limit: int, told: int | None = None
    ) -> tuple[Driver, list]:
        driver, asked = self.make(seed, batch), []
        trials: list[Trial] = []
        while len(asked) < limit:
            proposals = driver.ask(batch)
            if not proposals:
                break
            assert len(proposals) <= batch
            fresh = [
                judged(len(trials) + i, p.candidate, slope(self.space, p.candidate))
                for i, p in enumerate(proposals)
            ]
            trials += fresh
            driver.tell(fresh)
            asked.append(tuple(proposals))
        return driver, asked

    @pytest.mark.parametrize("batch", [1, 3, 8])
    def test_covers_the_space_without_an_invalid_or_repeated_proposal(self, batch):
        driver, asked = self.play(5, batch, 10**6)
        keys = [p.candidate.key for proposals in asked for p in proposals]
        assert len(set(keys)) == len(keys)
        assert all(not self.space.check(p.candidate) for proposals in asked for p in proposals)
        assert len(keys) == len(self.space.valid)
        assert driver.stopped

    def test_says_nothing_while_it_can_go_on(self):
        driver, _ = self.play(5, 4, 3)
        assert driver.stopped is None

    @pytest.mark.parametrize("batch", [1, 8])
    def test_is_a_function_of_seed_batch_and_trials(self, batch):
        assert self.play(3, batch, 20)[1] == self.play(3, batch, 20)[1]

    @pytest.mark.parametrize("told", CHUNKINGS, ids=lambda chunks: chunks.__name__)
    def test_trials_may_be_told_in_any_pieces_of_their_order(self, told):
        def value(candidate):
            return slope(self.space, candidate)

        whole = trajectory(self.make(7, 8), 8, 64, value)
        assert trajectory(self.make(7, 8), 8, 64, value, told) == whole

    def test_may_be_asked_again_before_it_is_told(self):
        driver = self.make(2, 4)
        driver.tell([judged(0, self.space.candidate(int(self.space.valid[0])), 1.0)])
        waiting = [p for _ in range(4) for p in driver.ask(4)]
        assert len({p.candidate for p in waiting}) == len(waiting) > 0
        driver.tell(
            [
                judged(1 + i, p.candidate, slope(self.space, p.candidate))
                for i, p in enumerate(waiting)
            ]
        )
        assert not {p.candidate for p in driver.ask(4)} & {p.candidate for p in waiting}

    @pytest.mark.parametrize("objective", [0.0, None], ids=["passed", "failed"])
    def test_does_not_propose_a_baseline_that_is_a_trial(self, objective):
        """It is told before the first ask, and may have failed."""
        baseline = self.space.candidate(int(self.space.valid[len(self.space.valid) // 2]))
        driver, seen = self.make(4, 8), []
        driver.tell([judged(0, baseline, objective)])
        while proposals := driver.ask(8):
            start = 1 + len(seen)
            seen += [p.candidate for p in proposals]
            driver.tell(
                [
                    judged(start + i, p.candidate, slope(self.space, p.candidate))
                    for i, p in enumerate(proposals)
                ]
            )
        assert baseline not in seen
        assert len(set(seen)) == len(seen) == len(self.space.valid) - 1

    def test_survives_only_failures(self):
        driver = self.make(0, 4)
        for ask in range(10):
            proposals = driver.ask(4)
            driver.tell([judged(4 * ask + i, p.candidate, None) for i, p in enumerate(proposals)])
            assert proposals

    def test_does_not_propose_what_somebody_else_tried(self):
        driver = self.make(0, 8)
        taken = [self.space.candidate(i) for i in self.space.valid[: len(self.space.valid) // 2]]
        driver.tell([judged(i, c, slope(self.space, c)) for i, c in enumerate(taken)])
        keys = {c.key for c in taken}
        for _ in range(5):
            proposals = driver.ask(8)
            assert all(p.candidate.key not in keys for p in proposals)
            driver.tell(
                [judged(999, p.candidate, slope(self.space, p.candidate)) for p in proposals]
            )


def scattered(candidate: Candidate) -> float | None:
    """A made-up objective of any candidate, without any shape; some fail."""
    drawn = int(candidate.key[:8], 16)
    return None if drawn % 11 == 3 else (drawn % 1000) / 100


class OpenDriverContract:
    """What `DriverContract` asks for, in a space without an end."""

    space: Space

    def make(self, seed: int, batch: int) -> Driver:
        raise NotImplementedError

    def play(self, seed: int, batch: int, count: int) -> list[tuple[Proposal, ...]]:
        driver, asked = self.make(seed, batch), []
        number = 0
        while number < count:
            proposals = driver.ask(batch)
            assert driver.stopped is None
            assert 0 < len(proposals) <= batch
            trials = [
                judged(number + i, p.candidate, scattered(p.candidate))
                for i, p in enumerate(proposals)
            ]
            driver.tell(trials)
            number += len(trials)
            asked.append(tuple(proposals))
        return asked

    @pytest.mark.parametrize("batch", [1, 8])
    def test_proposes_nothing_invalid_and_nothing_twice(self, batch):
        candidates = [p.candidate for asked in self.play(5, batch, 40) for p in asked]
        assert len(set(candidates)) == len(candidates)
        assert all(not self.space.check(candidate) for candidate in candidates)

    @pytest.mark.parametrize("batch", [1, 8])
    def test_is_a_function_of_seed_batch_and_trials(self, batch):
        assert self.play(3, batch, 40) == self.play(3, batch, 40)
        assert self.play(3, batch, 40) != self.play(4, batch, 40)

    @pytest.mark.parametrize("told", CHUNKINGS, ids=lambda chunks: chunks.__name__)
    def test_trials_may_be_told_in_any_pieces_of_their_order(self, told):
        whole = trajectory(self.make(7, 8), 8, 32, scattered)
        assert trajectory(self.make(7, 8), 8, 32, scattered, told) == whole

    def test_may_be_asked_again_before_it_is_told(self):
        driver = self.make(2, 4)
        driver.tell([judged(0, self.space.default, 1.0)])
        waiting = [p for _ in range(4) for p in driver.ask(4)]
        candidates = {p.candidate for p in waiting}
        assert len(candidates) == len(waiting) > 0
        assert self.space.default not in candidates
        driver.tell(
            [judged(1 + i, p.candidate, scattered(p.candidate)) for i, p in enumerate(waiting)]
        )
        assert not {p.candidate for p in driver.ask(4)} & candidates

    def test_parents_were_proposed_before(self):
        known: set[str] = set()
        for asked in self.play(2, 8, 40):
            assert all(set(p.parents) <= known for p in asked)
            known |= {p.candidate.key for p in asked}

    def test_survives_only_failures(self):
        driver = self.make(0, 4)
        for ask in range(6):
            proposals = driver.ask(4)
            assert proposals
            driver.tell([judged(4 * ask + i, p.candidate, None) for i, p in enumerate(proposals)])

    def test_does_not_propose_what_somebody_else_tried(self):
        taken = [p.candidate for asked in self.play(0, 8, 24) for p in asked]
        driver = self.make(0, 8)
        driver.tell([judged(i, c, scattered(c)) for i, c in enumerate(taken)])
        assert not {p.candidate for p in driver.ask(8)} & set(taken)


class EvaluatorContract:
    """A judge answers in order, keyed by request, and its claims have intervals."""

    seed = 0
    make: Callable[[int], object]

    def candidates(self) -> tuple[Candidate, Candidate]:
        """Two candidates that pass: one to judge, one to compare with."""
        return (
            knob_candidate({"bm": 256, "bn": 128, "bk": 32, "warps": 8, "stages": 4, "group_m": 8}),
            knob_candidate({"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}),
        )

    def request(self, stage: Stage = Stage.SCREEN, **fields: int) -> Request:
        one, other = self.candidates()
        return Request(one, stage, (Reference(Role.BASELINE, other),), **fields)

    def test_verdicts_come_in_order(self):
        judge = self.make(0)
        one, other = self.candidates()
        against = (Reference(Role.BASELINE, other),)
        requests = [Request(c, Stage.SCREEN, against) for c in (one, other, one)]
        first, second, third = judge.evaluate(requests)
        assert first == third != second

    def test_equal_requests_get_equal_verdicts(self):
        request = self.request(trial=3)
        judge = self.make(1)
        assert judge.deterministic
        alone = judge.evaluate([request])
        assert list(alone) == list(self.make(1).evaluate([self.request(trial=9), request]))[1:]

    def test_a_screen_is_one_unpaired_sample_against_the_true_time(self):
        (verdict,) = self.make(0).evaluate([self.request()])
        assert verdict.status is Status.OK
        (m,) = verdict.measurements
        assert len(m.samples.candidate_ns) == 1
        assert m.samples.reference_exact
        assert m.samples.reference_ns[0] == self.make(0).true_ns([self.candidates()[1]])[0]

    def test_a_confirmation_is_a_claim_with_the_truth_inside(self):
        judge = self.make(0)
        one, other = self.candidates()
        fields = {"process_pairs": 10, "pairs": 8, "first_repeat": 1}
        (verdict,) = judge.evaluate([self.request(Stage.CONFIRM, **fields)])
        assert verdict.status.is_claim
        truth = judge.true_ns([other])[0] / judge.true_ns([one])[0]
        assert 2 ** log2_speedup(verdict) == pytest.approx(truth, rel=0.03)

    def test_nothing_is_faster_than_the_floor(self):
        judge = self.make(0)
        floor = judge.floor_ns(judge.problem.workloads[0])
        assert 0 < floor <= judge.true_ns([self.candidates()[0]])[0]


class StoreContract:
    """A store keeps what it was told, whole and in order."""

    def make(self) -> Store:
        raise NotImplementedError

    def one(self, number: int, objective: float | None = 1.0) -> Trial:
        return judged(number, knob_candidate({"a": number}), objective)

    def test_trials_verdicts_and_events_come_back(self):
        store = self.make()
        trials = [self.one(0), self.one(1, None), self.one(2)]
        store.record(trials[:2], events=[event("duplicate", 1, 0, key="x")])
        store.record(trials[2:], sitting=Sitting(1.0, 0.0))
        assert store.trials() == trials
        assert [e.data for e in store.events()] == [{"key": "x"}]
        claim = Verdict(Status.WIN, measurements=trials[0].verdicts[0][1].measurements)
        store.record(verdicts=[(0, Stage.CONFIRM, claim)])
        assert store.trials()[0].verdict(Stage.CONFIRM) == claim
        assert store.trials()[0].status is Status.WIN

    def test_parents_come_back_as_they_were(self):
        store = self.make()
        odd = replace(self.one(0), parents=("a b", "", "c"))
        store.record([odd])
        assert store.trials() == [odd]

    def test_meta_is_recorded_with_the_rest(self):
        store = self.make()
        store.record(events=[event("extended", 0)], meta={"machine": "new"})
        assert store.meta() == {"machine": "new"}

    def test_a_known_event_is_recorded_once(self):
        store = self.make()
        store.record(events=[event("raced", 3, 0, rule="trials")])
        store.record(events=[event("raced", 3, 0, rule="other"), event("raced", 4, 0)])
        assert [json.loads(e.payload) for e in store.events()] == [{"rule": "trials"}, {}]

    def test_meta_is_replaced(self):
        store = self.make()
        store.set_meta(machine="a", version="1")
        store.set_meta(machine="b")
        assert store.meta() == {"machine": "b", "version": "1"}

    def test_time_is_what_the_sitting_said_last(self):
        store = self.make()
        store.record([self.one(0)], sitting=Sitting(1.0, 0.0))
        store.record([self.one(1)], sitting=Sitting(2.0, 0.5))
        assert store.spent() == Sitting(2.0, 0.5)
        assert store.spent(earlier=True) == Sitting()
