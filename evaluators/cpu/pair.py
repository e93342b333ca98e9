"""A process pair: two fresh workers on one arena, and the calls that they get.

One phase: every call of the candidate is on values that it has never seen, among decoys where it is
short, and is checked. Some calls are timed, in pairs with the reference on the same values at the
same addresses; some are not, on stressed inputs, and only the judge knows which. The first call of
each worker pays for page faults and lazy binding, and is not timed either.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.types import Arm, CacheState, Conditions, ProcessPair, Status, Verdict
from kernelwright.evaluators.cpu.draws import PLAIN, WHOLE, Drawn, Draws
from kernelwright.evaluators.cpu.floor import Floor
from kernelwright.evaluators.cpu.host import Watch
from kernelwright.evaluators.cpu.isolation import numbers
from kernelwright.evaluators.cpu.memory import Arena, Outputs
from kernelwright.evaluators.cpu.native import judge
from kernelwright.evaluators.cpu.placement import Placement
from kernelwright.evaluators.cpu.secret import Secret
from kernelwright.evaluators.cpu.worker import Called, Worker, WorkerError

# A candidate this much slower than its reference is stopped; and one this much slower is screened
# with a single pair.
HOPELESS, SLOW = 100.0, 3.0
# But not before so many s.
LEAST_LIMIT_S = 1.0
# Kernels below so many ns have the values of their call among at least this many others; more, so
# that all of them together take so long that what fits into the gap before the bell is little.
SHORT_NS, DECOYS, DECOYED_NS = 1e6, 3, 1e5
# Kernels of fewer floors than this, or of less than so many ns, are timed in batches of at most so
# many; no more slots than this.
FLOORS, BATCHED_NS, MOST_BATCHED, MOST_SLOTS = 20.0, 1e4, 32, 256
# No more memory than this for decoys and batches.
ROOM_BYTES = 256 << 20
# Output elements that are read the moment a call is over.
CANARIES = 48
# CPU time in ns outside a call, beyond what is usual, that is not charged to it; what is no reason
# to refuse, and how many times what waking up takes; how many undisturbed calls of each arm decide
# that, among how many times as many; and how many standard errors.
DEAD_NS, OUTSIDE_MARGIN_NS, WAKES = 2_000.0, 20_000.0, 2.0
SECOND_LOOK, LOOKS, DEVIATIONS = 12, 3, 5.0
# The share of a call's time that must lie outside of it to be refused; what is less is charged.
MOVED = 0.25
# How many stressed calls a process gets beside those that its stage asks for.
_EXTRA = 2


class ArmFailedError(Exception):
    """A worker of one arm failed."""

    def __init__(self, arm: Arm, verdict: Verdict) -> None:
        super().__init__(arm, verdict.code)
        self.arm, self.verdict = arm, verdict


@dataclass(frozen=True, slots=True)
class Shape:
    """How the slots of an arena are used: ``groups`` of ``batch`` slots, one of them live."""

    batch: int = 1
    groups: int = 1

    def is_safer_than(self, other: Shape) -> bool:
        """Whether calls in the other one had no decoys, or less than half of the batch, that these
        have; less is no reason to repeat them.
        """
        return (other.groups == 1 < self.groups) or 2 * other.batch < self.batch


def shape_for(least_ns: float, floor: Floor, slot_bytes: int) -> Shape:
    """The slots for kernels that may take as little as ``least_ns``."""
    room = max(1, min(MOST_SLOTS, ROOM_BYTES // max(1, slot_bytes)))
    least_ns = max(1.0, least_ns)
    batch = 1
    if least_ns < max(FLOORS * floor.call_ns, BATCHED_NS):
        wanted = max(FLOORS * floor.call_ns, BATCHED_NS) / least_ns
        batch = max(1, min(math.ceil(wanted), MOST_BATCHED, room))
    groups = 1
    if least_ns < SHORT_NS:
        wanted = max(1.0 + DECOYS, DECOYED_NS / (batch * least_ns))
        groups = max(1, min(math.ceil(wanted), room // batch))
    return Shape(batch, groups)


@dataclass
class Sitting:
    """What all process pairs of a judge's sitting have in common: the secret, the cores, what the
    harness itself takes, the longest that a call may take, in s, who watches the host, and by
    workload the CPU time that references usually take outside calls.
    """

    secret: Secret
    where: Placement
    floor: Floor
    limit_s: float
    watch: Watch
    pairs: int = 0
    usual_ns: dict[str, float] = field(default_factory=dict)

    def next_pair(self) -> int:
        """A number for the next process pair, which has random streams of its own."""
        self.pairs += 1
        return self.pairs


Start = Callable[[Arena, Arm], Worker]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a process pair is for: how many timed pairs, in which cache state, which kinds of
    stressed calls; whether one timed pair is enough to see that a candidate is slow, and whether
    the reference is a candidate as well.
    """

    pairs: int
    state: CacheState
    stresses: tuple[str, ...]
    may_stop: bool = False
    of_candidates: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """What a call is given: the first slot, and the draws of its slots."""

    slot: int
    drawn: tuple[Drawn, ...]


class Pair:
    """Two workers, or one that is only checked, on an arena of their own.

    Args:
        sitting: what it has in common with others.
        draws: values of a workload of fixed extents.
        shape: how many slots there are and what for.
        start: starts an arm's worker on an arena.

    Raises:
        ProblemError: if there is no memory for the arrays.
    """

    def __init__(self, sitting: Sitting, draws: Draws, shape: Shape, start: Start) -> None:
        self._sitting, self._draws, self.shape, self._start = sitting, draws, shape, start
        self._number = sitting.next_pair()
        self._rng = sitting.secret.stream("order", self._number)
        self._calls = 0
        self._outside: dict[Arm, list[Called]] = {arm: [] for arm in Arm}
        self.worst_error = 0.0
        self.fastest_ns = math.inf
        self.disturbed = 0
        self.call_s: dict[Arm, float] = {}
        self.facts: dict[str, float] = {}
        try:
            slots = shape.batch * shape.groups
            self._arena = Arena(draws.problem, draws.workload, slots, self._rng)
        except (MemoryError, OSError, ValueError) as error:
            what = f"{draws.problem.name} {draws.workload.label}: no memory for its arrays: {error}"
            raise ProblemError(what) from None

    def measure(
        self, asked: Asked, order: tuple[Arm, Arm], roles: tuple[Arm, Arm] | None = None
    ) -> ProcessPair:
        """Timed pairs of both arms, with more calls of the candidate in between.

        Args:
            asked: how many, and in which state.
            order: who is started first.
            roles: who is called first in the first pair; then they take turns.

        Raises:
            ArmFailedError: if an arm fails.
            ProblemError: if the problem cannot be drawn.
        """
        limit_s, state = self._sitting.limit_s, asked.state
        roles = roles or order
        taken: list[tuple[dict[Arm, Called], Conditions, bool]] = []
        more = asked.pairs
        workers: dict[Arm, Worker] = {}
        pending = self._order_of_calls(asked)
        watch = self._sitting.watch
        try:
            for arm in order:
                workers[arm] = self._started(arm)
            first = self._load(self._first_kind())
            # The reference's first call says how long is too long.
            times: dict[Arm, float] = {}
            for arm in (Arm.REFERENCE, Arm.CANDIDATE):
                times[arm] = self._checked(first, workers[arm], arm, state, limit_s).time_ns
                if arm is Arm.REFERENCE:
                    limit_s = min(limit_s, max(LEAST_LIMIT_S, HOPELESS * times[arm] / 1e9))
            # A single time may have met an interruption: two have to say that it is slow.
            was_slow = times[Arm.CANDIDATE] > SLOW * times[Arm.REFERENCE]
            turn = 0
            while pending:
                kind = pending.popleft()
                load = self._load(kind)
                if kind != PLAIN:
                    self._checked(load, workers[Arm.CANDIDATE], Arm.CANDIDATE, state, limit_s)
                    continue
                turn += 1
                roles_now = roles if turn % 2 else roles[::-1]
                clock_hz = watch.look()
                calls = self._both(load, workers, roles_now, state, limit_s)
                times = {arm: called.time_ns for arm, called in calls.items()}
                each = [(c.interruptions, c.waited_ns) for c in calls.values()]
                seen = watch.conditions(clock_hz, each)
                pair_ns = self.shape.batch * sum(c.time_ns for c in calls.values())
                is_disturbed = watch.is_disturbed(seen, pair_ns)
                taken.append((calls, seen, is_disturbed))
                if is_disturbed and more:
                    more -= 1
                    pending.append(PLAIN)
                is_slow = times[Arm.CANDIDATE] > SLOW * times[Arm.REFERENCE]
                if asked.may_stop and was_slow and is_slow:
                    pending = deque(rest for rest in pending if rest != PLAIN)
                was_slow = is_slow
            usual = self._usual(workers[Arm.REFERENCE], of_both=asked.of_candidates)
            self._see_that_it_works_in_its_calls(workers, state, limit_s)
            self._note(workers[Arm.CANDIDATE])
        finally:
            self._close(workers)
        return self._kept(asked.pairs, taken, usual, order[0], roles)

    def _both(
        self,
        load: Load,
        workers: Mapping[Arm, Worker],
        roles: tuple[Arm, Arm],
        state: CacheState,
        limit_s: float,
    ) -> dict[Arm, Called]:
        """One timed pair: both arms on the same values, one right after the other, each on pages
        that it has just visited; the candidate's outputs are compared when both are over.
        """
        for arm in roles[::-1]:
            self._visit(workers[arm], arm, limit_s)
        self._arena.show()
        calls: dict[Arm, Called] = {}
        outputs: list[Outputs] = []
        for arm in roles:
            began = time.perf_counter()
            calls[arm] = self._run(load, workers[arm], arm, state, limit_s)
            if arm is Arm.CANDIDATE:
                outputs = self._outputs(load, calls[arm], arm)
            self.call_s[arm] = time.perf_counter() - began
        began = time.perf_counter()
        self._compare(load, outputs, Arm.CANDIDATE)
        self.call_s[Arm.CANDIDATE] += time.perf_counter() - began
        return calls

    def _visit(self, worker: Worker, arm: Arm, limit_s: float) -> None:
        # What it does now is not charged: let there be nothing to compute with.
        self._arena.hide()
        try:
            worker.visit(limit_s)
        except WorkerError as error:
            raise ArmFailedError(arm, _verdict(error)) from None

    def _kept(
        self,
        wanted: int,
        taken: list[tuple[dict[Arm, Called], Conditions, bool]],
        usual: float,
        started_first: Arm,
        roles: tuple[Arm, Arm],
    ) -> ProcessPair:
        """The pairs that nothing disturbed, in the order in which they were taken; where those are
        too few, as many of the others as are missing.
        """
        calm = sum(not is_disturbed for *_, is_disturbed in taken)
        room = max(0, wanted - calm)
        kept = []
        for calls, seen, is_disturbed in taken:
            if not is_disturbed or room:
                kept.append((calls, seen))
                room -= is_disturbed
        kept = kept[:wanted]
        self.disturbed = max(0, len(kept) - calm)
        charged = tuple(
            (self._charged(calls[Arm.CANDIDATE], usual), self._charged(calls[Arm.REFERENCE], usual))
            for calls, _ in kept
        )
        self.fastest_ns = min(min(pair) for pair in charged)
        conditions = tuple(seen for _, seen in kept)
        discarded = len(taken) - len(kept)
        return ProcessPair(started_first, roles, charged, conditions, discarded)

    def _usual(self, reference: Worker, *, of_both: bool) -> float:
        """The CPU time in ns that a call usually takes outside the call itself: the reference's
        median; the lesser of both arms' where the reference is a candidate, too, and is charged
        like one; where it is Python's, the last that is known of C on this workload.
        """
        if not reference.is_trusted:
            medians = (
                statistics.median(called.outside_ns for called in self._outside[arm])
                for arm in (Arm if of_both else (Arm.REFERENCE,))
            )
            found = max(0.0, min(medians))
            self._sitting.usual_ns[self._draws.workload.label] = found
        return self._sitting.usual_ns.get(self._draws.workload.label, math.inf)

    def _charged(self, called: Called, usual_ns: float) -> float:
        """The time of a call with what its worker did outside of it, before the bell or after it,
        beyond what is usual: so there is nothing to gain by doing it there, in whichever calls.
        """
        excess = called.outside_ns - usual_ns - DEAD_NS
        return called.time_ns + max(0.0, excess) / self.shape.batch

    def check(self, asked: Asked) -> None:
        """Calls of the candidate alone, none of them timed.

        Raises:
            ArmFailedError: if it fails.
            ProblemError: if the problem cannot be drawn.
        """
        workers: dict[Arm, Worker] = {}
        limit_s = self._sitting.limit_s
        try:
            workers[Arm.CANDIDATE] = worker = self._started(Arm.CANDIDATE)
            for kind in (self._first_kind(), *self._order_of_calls(asked)):
                self._checked(self._load(kind), worker, Arm.CANDIDATE, asked.state, limit_s)
        finally:
            self._close(workers)

    def probe(self, state: CacheState) -> float:
        """The time of the reference's second call, in ns.

        Raises:
            ArmFailedError: if it fails.
            ProblemError: if the problem cannot be drawn.
        """
        workers: dict[Arm, Worker] = {}
        limit_s = self._sitting.limit_s
        try:
            workers[Arm.REFERENCE] = worker = self._started(Arm.REFERENCE)
            load = self._load(self._first_kind())
            self._checked(load, worker, Arm.REFERENCE, state, limit_s)
            load = self._load(PLAIN)
            self._visit(worker, Arm.REFERENCE, limit_s)
            self._arena.show()
            return self._run(load, worker, Arm.REFERENCE, state, limit_s).time_ns
        finally:
            self._close(workers)

    def _note(self, worker: Worker) -> None:
        """What the verdict says of how it was reached."""
        self.facts = {
            "judge.floor_ns": self._sitting.floor.call_ns,
            "judge.batch": float(self.shape.batch),
            "judge.decoys": float(self.shape.groups - 1),
            "judge.outside_ns": statistics.median(
                called.outside_ns for called in self._outside[Arm.CANDIDATE]
            ),
            **dict(numbers(worker.parts)),
        }

    def _close(self, workers: Mapping[Arm, Worker]) -> None:
        for worker in workers.values():
            worker.close()
        self._arena.close()

    def _started(self, arm: Arm) -> Worker:
        try:
            return self._start(self._arena, arm)
        except WorkerError as error:
            raise ArmFailedError(arm, _verdict(error)) from None

    def _first_kind(self) -> str:
        """Whole numbers where there are any: most of what is wrong is seen at once."""
        return WHOLE if WHOLE in self._draws.stresses else PLAIN

    def _order_of_calls(self, asked: Asked) -> deque[str]:
        """Timed and stressed calls; nobody knows their order, nor how many are stressed."""
        kinds = list(asked.stresses)
        if self._draws.stresses:
            extra = int(self._rng.integers(_EXTRA + 1))
            kinds += self._rng.choice(self._draws.stresses, extra).tolist()
        calls = [PLAIN] * asked.pairs + kinds
        self._rng.shuffle(calls)
        return deque(calls)

    def _load(self, kind: str) -> Load:
        """Values for every slot of a call, which no worker sees yet."""
        self._calls += 1
        rng = self._sitting.secret.stream("values", self._number, self._calls)
        batch, groups = self.shape.batch, self.shape.groups
        live = int(rng.integers(groups))
        drawn: list[Drawn] = []
        try:
            for slot in range(batch * groups):
                if slot // batch == live:
                    drawn.append(self._draws.draw(rng, kind))
                    self._arena.write(slot, drawn[-1].inputs)
                else:
                    self._arena.write(slot, self._draws.inputs(rng, kind))
        except MemoryError as error:
            workload = self._draws.workload.label
            what = f"{self._draws.problem.name} {workload}: no memory for its arrays: {error}"
            raise ProblemError(what) from None
        return Load(live * batch, tuple(drawn))

    def _run(
        self, load: Load, worker: Worker, arm: Arm, state: CacheState, limit_s: float
    ) -> Called:
        """One call on poisoned outputs in a declared cache state."""
        arena, batch = self._arena, self.shape.batch
        arena.poison(int(self._rng.integers(1, 1 << 16)))
        live = range(load.slot, load.slot + batch)
        # In any order: what was touched last would be the nearest.
        _prepare(arena, self._rng.permutation(arena.slots).tolist(), state, self._sitting.where)
        try:
            called = worker.call(load.slot, batch, limit_s * batch, self._canaries(live))
        except WorkerError as error:
            raise ArmFailedError(arm, _verdict(error)) from None
        self._outside[arm].append(called)
        return called

    def _canaries(self, live: range) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Where output elements lie that must not change any more once the call is over."""
        places, sizes = [], []
        outputs = [
            array for slot in live for array in self._arena.written[slot].values() if array.size
        ]
        if not outputs:
            return np.empty(0, np.uint64), np.empty(0, np.int64)
        for which in self._rng.integers(len(outputs), size=CANARIES):
            array = outputs[which]
            element = int(self._rng.integers(array.size))
            places.append(array.ctypes.data + element * array.itemsize)
            sizes.append(array.itemsize)
        return np.array(places, np.uint64), np.array(sizes, np.int64)

    def _checked(
        self, load: Load, worker: Worker, arm: Arm, state: CacheState, limit_s: float
    ) -> Called:
        """A call that is not timed, and whose every output is compared. No worker can tell it from
        one that is.
        """
        self._visit(worker, arm, limit_s)
        self._arena.show()
        called = self._run(load, worker, arm, state, limit_s)
        self._compare(load, self._outputs(load, called, arm), arm)
        return called

    def _outputs(self, load: Load, called: Called, arm: Arm) -> list[Outputs]:
        """What a call's slots hold, while nothing runs.

        Raises:
            ArmFailedError: if anything was written late, or where it does not belong.
        """
        arena = self._arena
        live = range(load.slot, load.slot + self.shape.batch)
        if called.late_elements:
            what = f"{called.late_elements} of {CANARIES} elements changed after the call was over"
            raise ArmFailedError(arm, Verdict(Status.REJECTED, "late_work", evidence=what))
        damage = arena.damaged(live)
        if damage is not None:
            evidence = f"wrote into the {damage}"
            raise ArmFailedError(arm, Verdict(Status.WRONG, "out_of_bounds", evidence=evidence))
        return [arena.outputs_of(slot) for slot in live]

    def _compare(self, load: Load, outputs: list[Outputs], arm: Arm) -> None:
        """Every output of a call with its answer.

        Raises:
            ArmFailedError: if one is wrong.
        """
        for found, drawn in zip(outputs, load.drawn, strict=True):
            fault, error = drawn.answers.check(found.arrays, found.poisoned)
            if fault is not None:
                verdict = Verdict(
                    Status.WRONG, fault.code, evidence=fault.evidence, max_error=fault.error
                )
                raise ArmFailedError(arm, verdict)
            if arm is Arm.CANDIDATE:
                self.worst_error = max(self.worst_error, error)

    def _see_that_it_works_in_its_calls(
        self, workers: Mapping[Arm, Worker], state: CacheState, limit_s: float
    ) -> None:
        """A worker that is not called has nothing to do: waking up and going to sleep takes it as
        long as the reference. What it does beyond that is charged to its times in any case; where
        medians of calls between which nothing else ran leave no doubt, it is refused.

        Raises:
            ArmFailedError: if it works before the bell or after its calls.
        """
        if workers[Arm.REFERENCE].is_trusted:
            # Python says nothing about what is usual for C; the baseline's pairs do.
            return
        # Where the bell is the wake-up, all that it does is in its time, or after it.
        is_blocking = self._sitting.where.blocking
        # Two workers of one kernel take unlike long to wake up, more so where that takes long.
        floor = self._sitting.floor
        usual_margin = max(OUTSIDE_MARGIN_NS, WAKES * floor.gap_ns)
        margin = floor.call_ns if is_blocking else usual_margin
        # Whoever moves work out of its calls moves a good part of it.
        typical = statistics.median(c.time_ns for c in self._outside[Arm.CANDIDATE])
        margin = max(margin, MOVED * typical * self.shape.batch)
        found, usual, _ = self._compared(undisturbed=False)
        if found <= usual + margin:
            return
        for number in range(LOOKS * SECOND_LOOK):
            load = self._load(PLAIN)
            for arm in (tuple(Arm), tuple(Arm)[::-1])[number % 2]:
                self._checked(load, workers[arm], arm, state, limit_s)
            calm = [sum(c.undisturbed for c in calls) for calls in self._outside.values()]
            if min(calm) >= SECOND_LOOK:
                break
        if min(calm) < SECOND_LOOK:
            return
        found, usual, spread = self._compared(undisturbed=True)
        if found <= usual + max(margin, DEVIATIONS * spread):
            return
        what = (
            f"{found / 1e3:.0f} us of CPU time a call outside the call itself, before the bell or "
            f"after it, where the reference takes {usual / 1e3:.0f} (medians of {min(calm)})"
        )
        raise ArmFailedError(Arm.CANDIDATE, Verdict(Status.REJECTED, "late_work", evidence=what))

    def _compared(self, *, undisturbed: bool) -> tuple[float, float, float]:
        """Medians of the CPU time in ns outside calls, of the candidate and of the reference, and
        the standard error of a median by the reference: the candidate's own spread is its doing.
        """
        medians, error = {}, 0.0
        for arm, calls in self._outside.items():
            values = [c.outside_ns for c in calls if c.undisturbed or not undisturbed]
            medians[arm] = statistics.median(values)
            spread = statistics.median(abs(value - medians[arm]) for value in values)
            # The median's, of normal values: 1.253 σ / √n, with σ = 1.483 MAD.
            if arm is Arm.REFERENCE:
                error = 1.253 * 1.483 * spread / math.sqrt(len(values))
        # Below nothing: threads that had nothing to do, or calls in which others ran.
        return medians[Arm.CANDIDATE], max(medians[Arm.REFERENCE], 0.0), error


def _prepare(arena: Arena, slots: list[int], state: CacheState, where: Placement) -> None:
    """Put the arrays of slots into a cache state, in this order."""
    ffi, native = judge()
    addresses, sizes = arena.pieces(slots)
    places = np.array(addresses, np.uint64)
    bytes_ = np.array(sizes, np.int64)
    cold = state is CacheState.COLD
    native.kw_prepare(
        ffi.cast("char **", places.ctypes.data),
        ffi.cast("int64_t *", bytes_.ctypes.data),
        len(places),
        cold,
        where.workers[0],
    )


def _verdict(error: WorkerError) -> Verdict:
    return Verdict(error.status, error.code, evidence=error.evidence)
