"""What a campaign is served from the tuning cache instead of judging it.

A failure that is the program's own (it does not build, crashes, computes something else, is
refused) is served wherever the key is the same. A time is a thing of its sitting, so before any is
served one record is judged again, the best, and the others are served only if the judge finds the
same: to the last bit where verdicts are functions of their requests, else within `AGREE` of the
ratio or within the interval that was claimed, and with the clock within `CLOCK` of what it was.
What is served is a screen: it may choose who is raced and confirmed, and both are measured afresh,
so no claim ever rests on it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.env.objective import log2_speedup
from kernelwright.env.types import (
    NOISY_HOST,
    REFERENCE_FAILED,
    CacheState,
    Candidate,
    Language,
    ProcessPair,
    Reference,
    Request,
    Role,
    Scalar,
    Stage,
    Status,
    Verdict,
    knob_candidate,
)
from kernelwright.evaluators.early import least
from kernelwright.evaluators.statistics import speedup
from kernelwright.search.answers import samples_ns
from kernelwright.search.trial import Trial
from kernelwright.search.tuning.cache import Snapshot
from kernelwright.search.tuning.identity import completed
from kernelwright.search.tuning.record import Record, verdict_data

# Kinds of events: what the campaign found in the cache, a trial that was served from it, and that
# what it found is no longer there.
CACHE, SERVED, LOST = "cache", "served", "cache_lost"
# How far the ratio of the record that is judged again may be off, and the clock, both as ratios:
# screens of a few pairs scatter by a few hundredths, and an objective is a chain of two or three.
AGREE, CLOCK = 1.1, 1.1
# A claim whose limits are further apart than this ratio says too little for anything to agree.
WIDEST = 1.5
# Failures that say nothing about the host.
_OWN = frozenset({Status.WRONG, Status.CRASHED, Status.BUILD_ERROR, Status.REJECTED})
# What says nothing about the candidate, so it is not kept.
_UNKEPT = frozenset({REFERENCE_FAILED, NOISY_HOST})
ALL, FAILURES = "all", "failures"


@dataclass(frozen=True, slots=True)
class Terms:
    """How a campaign's candidates are looked up: what a candidate means, whether it is one of the
    space, the baseline, the declared defaults of knobs that a record may lack, how its judge
    judges (how many samples a screen takes, and whether it may end early), and whether candidates
    are macros of a text.
    """

    identify: Callable[[Candidate], str]
    belongs: Callable[[Candidate], bool]
    baseline: Candidate
    defaults: Mapping[str, Scalar]
    deterministic: bool
    pairs: int = 1
    state: CacheState = CacheState.COLD
    may_cut: bool = False
    is_template: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """A verdict from the cache, with the objective that it gave and the record that holds it."""

    verdict: Verdict
    objective: float | None
    record: Record


class Serving:
    """A campaign's view of one file.

    Args:
        snapshot: what was read of it.
        terms: how candidates are looked up.
        lost: why what an earlier sitting saw cannot be read again, if it cannot.
    """

    def __init__(self, snapshot: Snapshot, terms: Terms, lost: str | None = None) -> None:
        self.snapshot, self.lost, self._terms = snapshot, lost, terms
        self._baseline = terms.identify(terms.baseline)
        self._serves = ""
        self._by_meaning: dict[str, list[Record]] = {}
        for record in snapshot.trials:
            meaning = completed(record.means, terms.defaults)
            self._by_meaning.setdefault(meaning, []).append(record)

    # What is decided once, when a campaign starts

    def probe(self) -> Request | None:
        """The screen that says whether recorded times hold in this sitting; None if there are
        none.
        """
        record = self._best()
        if record is None:
            return None
        # In the terms of then: simulated drift is a function of the trial's number.
        number = record.trial if self._terms.deterministic else 0
        return Request(
            record.candidate,
            Stage.SCREEN,
            (Reference(Role.BASELINE, self._terms.baseline),),
            trial=number,
            pairs=self._terms.pairs,
            state=self._terms.state,
        )

    def opening(self, found: Verdict | None) -> dict[str, Any]:
        """What is recorded of the cache when a campaign starts.

        Args:
            found: the verdict on `probe`, None if there was nothing to ask.
        """
        snapshot = self.snapshot
        serves, reason = self._decision(found)
        return {
            "file": f"{snapshot.path.parent.name}/{snapshot.path.name}",
            "size": snapshot.size,
            "sha256": snapshot.sha256,
            "records": len(snapshot.trials),
            "damaged": len(snapshot.faults),
            "serves": serves,
            "reason": reason,
        }

    def begin(self, opening: Mapping[str, Any]) -> None:
        """Serve what was decided when the campaign started."""
        self._serves = "" if self.lost else str(opening["serves"])

    def _decision(self, found: Verdict | None) -> tuple[str, str]:
        record = self._best()
        if record is None or found is None:
            return FAILURES, self._why_no_time()
        assert record.objective is not None
        ratio, before = log2_speedup(found), self._ratio(record)
        if ratio is None:
            return FAILURES, f"the best record, judged again, is {found.status} ({found.code})"
        then, now = (f"{2.0**value:.4g}x" for value in (before, ratio))
        said = f"the best record, judged again, is {now}, and was {then}"
        limit = 1e-9 if self._terms.deterministic else math.log2(AGREE)
        if abs(ratio - before) > limit and not self._is_within_claim(record, ratio):
            return FAILURES, f"{said}, so recorded times do not hold"
        was, clock = _clock_hz(_readable(record, Stage.SCREEN)), _clock_hz(found)
        if was and clock and not 1 / CLOCK <= clock / was <= CLOCK:
            clocks = f"at {clock / 1e9:.2f} GHz, and was at {was / 1e9:.2f} GHz"
            return FAILURES, f"the clock is {clocks}, so recorded times do not hold"
        return ALL, said

    def _why_no_time(self) -> str:
        """Why no record can be judged again."""
        count = len(self.snapshot.trials)
        others = sum(self._is_of_another_text(record) for record in self.snapshot.trials)
        if not count:
            return "nothing is recorded under this key yet"
        if others == count:
            return "they are of other texts of the template, and an edited text is another program"
        rest = f"{others} are of other texts of the template, and of the rest " if others else ""
        return f"{rest}none in this space has a time over this baseline"

    def _is_of_another_text(self, record: Record) -> bool:
        is_macros = self._terms.is_template and record.candidate.language is Language.KNOBS
        return is_macros and self._terms.identify(record.candidate) != record.means

    def _best(self) -> Record | None:
        """The record with the greatest speedup over this baseline that can be served, with its
        candidate as a campaign of today writes it. Where times vary one whose speedup was claimed
        goes before the others: the greatest of many screens owes a part of it to luck.
        """
        timed = [
            (self._has_claim(record), record.objective, -place, record)
            for place, record in enumerate(self.snapshot.trials)
            if record.objective is not None and self._is_comparable(record)
        ]
        for *_, record in sorted(timed, key=lambda entry: entry[:3], reverse=True):
            meaning = completed(record.means, self._terms.defaults)
            current = self._current(record.candidate)
            if (
                all(each.failure is None for each in self._by_meaning[meaning])
                and self._terms.belongs(current)
                and self._terms.identify(current) == meaning
            ):
                return replace(record, candidate=current)
        return None

    def _has_claim(self, record: Record) -> bool:
        stages = {stage for stage, _ in record.verdicts}
        return not self._terms.deterministic and Stage.CONFIRM in stages

    def _ratio(self, record: Record) -> float:
        """The log2 speedup of a record, as it was claimed if it was."""
        claim = _readable(record, Stage.CONFIRM) if self._has_claim(record) else None
        ratio = None if claim is None else log2_speedup(claim)
        assert record.objective is not None
        return record.objective if ratio is None else ratio

    def _is_within_claim(self, record: Record, ratio: float) -> bool:
        claim = _readable(record, Stage.CONFIRM) if self._has_claim(record) else None
        interval = None if claim is None else speedup(claim)
        if interval is None or not 0 < interval.low <= interval.high <= WIDEST * interval.low:
            return False
        return bool(interval.low <= 2.0**ratio <= interval.high)

    def _current(self, candidate: Candidate) -> Candidate:
        if candidate.language is not Language.KNOBS:
            return candidate
        return knob_candidate({**self._terms.defaults, **candidate.knobs})

    def _is_comparable(self, record: Record) -> bool:
        same = completed(record.baseline, self._terms.defaults) == self._baseline
        return same and self._is_as_asked(_readable(record, Stage.SCREEN))

    def _is_as_asked(self, screen: Verdict | None) -> bool:
        """Whether a screen took as many samples as one of this campaign would. A verdict that is a
        function of its request is that of another request if it took others; where times are
        measured a judge takes fewer of what is slow, as it sees fit.
        """
        if screen is None or not self._terms.deterministic:
            return screen is not None
        wanted = self._terms.pairs
        counts = [len(times) for times in samples_ns(screen).values()]
        fewest = least(wanted) if self._terms.may_cut else wanted
        return all(fewest <= count <= wanted for count in counts)

    # Serving

    def find(self, candidate: Candidate) -> Served | None:
        """The verdict on a candidate, if there is one that may be served."""
        if not self._serves:
            return None
        known = self._by_meaning.get(self._terms.identify(candidate), ())
        # What failed once is not believed again, as in a trial.
        for record in known:
            verdict = _failed(record)
            if verdict is not None and self._may_fail(verdict):
                return Served(verdict, None, record)
        if self._serves != ALL:
            return None
        for record in reversed(known):
            if record.objective is None or not self._is_comparable(record):
                continue
            verdict = _readable(record, Stage.SCREEN)
            if verdict is not None and verdict.status is Status.OK:
                return Served(self._as_of_today(verdict), record.objective, record)
        return None

    def _may_fail(self, verdict: Verdict) -> bool:
        return verdict.status in _OWN or self._terms.deterministic

    def _as_of_today(self, verdict: Verdict) -> Verdict:
        """A screen against the baseline names the baseline by the key that it has today."""
        key = self._terms.baseline.key
        measurements = tuple(
            replace(m, reference_key=key) if m.role is Role.BASELINE else m
            for m in verdict.measurements
        )
        return replace(verdict, measurements=measurements)


def _failed(record: Record) -> Verdict | None:
    """The first verdict of a record that is a failure, None if there is none."""
    return None if record.failure is None else _readable(record, record.failure)


def _readable(record: Record, stage: Stage) -> Verdict | None:
    """The verdict of a stage; None if there is none, or it is a later version's."""
    try:
        return record.verdict(stage)
    except ValueError:
        return None


def _clock_hz(verdict: Verdict | None) -> float | None:
    """The median clock of a screen's calls, None where the host was not watched."""
    clocks = [
        conditions.clock_hz
        for m in (verdict.measurements if verdict else ())
        if isinstance(m.samples, tuple)
        for pair in m.samples
        if isinstance(pair, ProcessPair)
        for conditions in pair.conditions
    ]
    return statistics.median(clocks) if clocks else None


def records_of(
    trials: list[Trial],
    served: frozenset[int],
    identify: Callable[[Candidate], str],
    baseline: Candidate,
    *,
    run: str,
    at: float,
) -> list[Record]:
    """What a campaign's trials add to the cache: every configuration with the verdicts that judges
    gave in it, failures too. Of a trial that was served only what was judged afterwards is new.
    """
    records, reference = [], identify(baseline)
    for trial in trials:
        verdicts = tuple(
            (stage, verdict_data(verdict))
            for stage, verdict in trial.verdicts
            if verdict.status is not Status.BROKEN and verdict.code not in _UNKEPT
            if not (stage is Stage.SCREEN and trial.number in served)
        )
        if verdicts:
            records.append(
                Record(
                    identify(trial.candidate),
                    reference,
                    trial.candidate,
                    trial.objective,
                    verdicts,
                    run,
                    trial.number,
                    at,
                )
            )
    return records
