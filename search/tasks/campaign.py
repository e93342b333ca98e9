"""A campaign of tasks: the scheduler says who is next, that task's campaign does one batch; when
the budget is spent, every task confirms its best.

Each task is a `search.campaign.Campaign` over a store of its own. The order of batches is a
function of what tasks were told, and recorded as events ``turn`` in the campaign's own store,
each before its batch. Killed at any instant and run again, everything is asked and told once more
from the start, only what is missing is judged, and the end is the same, bit for bit.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelwright.env.types import Unpaired, Verdict
from kernelwright.search.campaign import Campaign, Extension, Progress, ReplayError, Stop, screened
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.executors import Executor
from kernelwright.search.plan import Plan
from kernelwright.search.progress import Calls, together
from kernelwright.search.seeded import Seed, Seeded
from kernelwright.search.store import Sitting, Store
from kernelwright.search.tasks.sharing import Top, seeds_for
from kernelwright.search.tasks.standing import Scheduler, Standing
from kernelwright.search.trial import Event, Trial, event

TURN, FINISHED = "turn", "finished"


@dataclass(frozen=True, slots=True)
class Task:
    """One of many: a plan, where it is recorded, and what it is worth.

    ``weight`` is how often its kernel is called in a unit of traffic; ``place`` where it lies among
    the others; ``floor_ns`` the least time physics allows, 0 if unknown. The budget of the plan is
    not looked at: the campaign gives out its own.
    """

    name: str
    weight: float
    plan: Plan
    store: Store
    place: tuple[float, ...] = ()
    floor_ns: float = 0.0
    extension: Extension | None = None


class TaskCampaign:
    """Tasks under one budget.

    Args:
        tasks: in the order of the file, which breaks ties.
        store: where turns are recorded.
        scheduler: says who is next.
        trials: how many candidates are screened in all.
        share: whether tasks try each other's best configurations.
        executor: as of a campaign.
        extension: a larger number of trials than the store's.
        observe: called after every batch and every confirmation.
        watch: called with the number of a task and the trials of each of its batches.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        store: Store,
        *,
        scheduler: Scheduler,
        trials: int,
        share: bool = False,
        executor: Executor | None = None,
        extension: Extension | None = None,
        observe: Callable[[Progress], None] | None = None,
        watch: Callable[[int, Sequence[Trial]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._scheduler, self._budget, self._share = store, scheduler, trials, share
        self._observe, self._watch, self._clock = observe, watch, clock
        self._extension = extension
        self._standings = [Standing(t.name, t.weight, t.place, t.floor_ns) for t in tasks]
        self._seats = [self._seat(i, task, executor) for i, task in enumerate(tasks)]
        self._searched_s: float | None = None

    def _seat(self, number: int, task: Task, executor: Executor | None) -> Seat:
        def seeds(batch: int) -> Sequence[Seed]:
            if not self._share:
                return ()
            seat, tops = self._seats[number], [s.top for s in self._seats]
            space = task.plan.space
            return seeds_for(number, self._standings, tops, seat.tried, space, batch)

        return Seat(task, seeds, executor, self._clock, self._called)

    def run(self, *, confirm: bool = True) -> Stop:
        """Search all, confirm all (unless only the search is of interest), and say why the search
        ended.

        Raises:
            DriverError, JudgeError, ReplayError: as a campaign does.
        """
        self._began = self._clock()
        known = self._store.events()
        self._turns = [e for e in known if e.kind == TURN]
        self._earlier = self._store.spent(earlier=True)
        epoch = sum(e.kind == "extended" for e in known)
        if self._extension is not None:
            budget = dict(self._extension.budget)
            extended = event("extended", 0, epoch, budget=budget)
            self._record([extended], self._extension.meta)
            epoch += 1
        started: list[Seat] = []
        try:
            for seat in self._seats:
                with seat.watch:
                    seat.campaign.start()
                started.append(seat)
            stop, turns = self._search()
            self._searched_s = self._clock() - self._began
            if confirm:
                ended = event("stopped", turns, epoch, rule=stop.rule, reason=stop.reason)
                self._record([ended])
                self._confirm(stop)
                self._record([event(FINISHED, turns, epoch, trials=self._count)])
            return stop
        finally:
            for seat in started:
                seat.campaign.close()

    @property
    def _count(self) -> int:
        return sum(seat.campaign.count for seat in self._seats)

    def _search(self) -> tuple[Stop, int]:
        turn = 0
        for number in range(len(self._seats)):
            self._learn(number)
        while True:
            room = self._budget - self._count
            if room <= 0:
                return Stop("trials", screened(self._count)), turn
            choice = self._scheduler.choose(self._standings)
            if choice is None:
                return Stop("tasks", f"all {len(self._seats)} tasks have stopped"), turn
            seat, standing = self._seats[choice.task], self._standings[choice.task]
            why, gain_ns, name = choice.why, choice.gain_ns, seat.task.name
            self._take(event(TURN, turn, task=name, why=why, gain_ns=gain_ns))
            with seat.watch:
                seat.stop = seat.campaign.step(room)
            self._learn(choice.task)
            self._standings[choice.task] = (
                standing.after(turn, seat.best_ns)
                if seat.stop is None
                else replace(standing, is_open=False, last_turn=turn)
            )
            turn += 1
            self._report("search", self._count, self._budget)

    def _take(self, turn: Event) -> None:
        """Record a turn, or see that it is the one that was recorded.

        Raises:
            ReplayError: if it is another one.
        """
        past = self._turns[turn.ask] if turn.ask < len(self._turns) else None
        if past is None:
            self._record([turn])
        elif any(past.data[key] != turn.data[key] for key in ("task", "why")):
            # The gain that was expected may differ in its last bit from machine to machine.
            raise ReplayError(
                f"turn {turn.ask}: the store holds {past.payload}, "
                f"the scheduler now says {turn.payload}"
            )

    def _learn(self, number: int) -> None:
        """Take up what a task was told."""
        trials = self._seats[number].heard()
        if trials and self._watch is not None:
            self._watch(number, trials)

    def _confirm(self, stop: Stop) -> None:
        for done, seat in enumerate(self._seats, 1):
            with seat.watch:
                seat.campaign.finish(seat.stop or stop)
            self._report("confirm", done, len(self._seats))

    def _record(self, events: Sequence[Event], meta: Mapping[str, str] | None = None) -> None:
        self._store.record(events=events, sitting=self._sitting(), meta=meta)

    def _sitting(self) -> Sitting:
        elapsed = self._clock() - self._began
        search = elapsed if self._searched_s is None else self._searched_s
        return Sitting(search, elapsed - search)

    def _called(self) -> None:
        self._report("search", self._count, self._budget)

    def _report(self, phase: str, done: int, total: int) -> None:
        if self._observe is None:
            return
        counts = sum((seat.counts for seat in self._seats), Counter[str]())
        now, before = self._sitting(), self._earlier
        seconds = now.search_s + now.confirm_s + before.search_s + before.confirm_s
        times = [s for s in self._standings if s.best_ns is not None]
        total_us = sum(s.share for s in times) / 1000
        note = (
            f"{len(times)}/{len(self._seats)} tasks have a time, weighted total {total_us:.1f} us"
        )
        if phase == "confirm":
            note = f"{done}/{total} tasks confirmed"
        self._observe(
            Progress(
                *(phase, done, total, self._count, dict(counts), None, seconds),
                note=note,
                calls=together(seat.campaign.calls for seat in self._seats),
            )
        )


class Stopwatch:
    """A clock that runs while it is entered: the time of one task among many, in s."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._total = 0.0
        self._since: float | None = None

    def __enter__(self) -> Stopwatch:
        self._since = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._total, self._since = self(), None

    def __call__(self) -> float:
        """Seconds so far."""
        return self._total + (0.0 if self._since is None else self._clock() - self._since)


class Seat:
    """A task at the table: its campaign, what it was told, and why it stopped."""

    def __init__(
        self,
        task: Task,
        seeds: Callable[[int], Sequence[Seed]],
        executor: Executor | None,
        clock: Callable[[], float],
        called: Callable[[], None],
    ) -> None:
        self.task, self.watch = task, Stopwatch(clock)
        self.stop: Stop | None = None
        self.top, self.tried = Top(), set[str]()
        self.counts: Counter[str] = Counter()
        self.best_ns: float | None = None
        self._baseline_ns: float | None = None
        self._driver: Seeded | None = None
        self._heard = 0

        def make(journal: Journal) -> Driver:
            self._driver = Seeded(task.plan.make_driver(journal), journal, seeds)
            return self._driver

        plan = replace(task.plan, make_driver=make, budget=replace(task.plan.budget, trials=None))
        self._calls: Calls | None = None
        self._called = called
        self.campaign = Campaign(
            plan,
            task.store,
            executor=executor,
            observe=self._observe,
            extension=task.extension,
            clock=self.watch,
        )

    def _observe(self, progress: Progress) -> None:
        """Pass on what is new of calls; the rest is told turn by turn."""
        if progress.calls != self._calls:
            self._calls = progress.calls
            self._called()

    def heard(self) -> list[Trial]:
        """What the driver was told since this was asked last, taken up."""
        assert self._driver is not None
        fresh = self._driver.told[self._heard :]
        self._heard += len(fresh)
        for trial in fresh:
            self._learn(trial)
        return fresh

    def _learn(self, trial: Trial) -> None:
        self.tried.add(trial.candidate.key)
        self.counts[trial.status.value] += 1
        if trial.objective is None:
            return
        if self._baseline_ns is None:
            self._baseline_ns = _time_ns(trial.verdicts[0][1]) * 2.0**trial.objective
        time_ns = self._baseline_ns / 2.0**trial.objective
        self.top.learn(time_ns, trial.number, trial.candidate)
        self.best_ns = time_ns if self.best_ns is None else min(self.best_ns, time_ns)


def _time_ns(verdict: Verdict) -> float:
    """The candidate's time in ns, the sum of the medians over workloads."""
    times = {}
    for measurement in verdict.measurements:
        samples = measurement.samples
        times[measurement.workload] = statistics.median(
            samples.candidate_ns
            if isinstance(samples, Unpaired)
            else [c for pair in samples for c, _ in pair.samples_ns]
        )
    return sum(times.values())
