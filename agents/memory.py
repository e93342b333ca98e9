"""What a driver that talks remembers of the trials it was told, and how it is put into a prompt.

A function of the trials and of the model's own replies: nothing else gets in, so that a campaign
that goes on after an interruption asks the same questions.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.dialects.fences import fenced
from kernelwright.env.types import Candidate
from kernelwright.search.trial import Trial

MOST_FAILURES = 4
MOST_REPEATED = 4
MOST_DETAIL = 600
MOST_LINE = 1200
MOST_SPEEDUP = 2.0**60


@dataclass(frozen=True, slots=True)
class Row:
    """A tried candidate in a list."""

    text: str
    result: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that failed, or a reply that the space refused."""

    text: str
    status: str
    code: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Parent:
    """The program that a model is asked to improve."""

    key: str
    result: str
    block: str


class Memory:
    """Told trials and refused replies. What was proposed and never told is forgotten.

    Args:
        dialect: how candidates are shown.
        history: how many tried candidates a prompt lists.
        parents: how many of the best are taken for a parent.
    """

    def __init__(self, dialect: Dialect, *, history: int, parents: int) -> None:
        self._dialect, self._history, self._parents = dialect, history, parents
        self._best: list[tuple[float, int, Trial]] = []
        self._latest: list[Trial] = []
        self._failures: list[Failure] = []
        self._pending: dict[str, Candidate] = {}  # by form, as what was tried
        self._forms: dict[str, Trial] = {}
        self._repeated: list[Trial] = []
        self._lines: dict[str, str] = {}
        self.count = 0

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether the same program was tried or has been proposed, however it is spelled."""
        form = self._dialect.form(candidate)
        return form in self._forms or form in self._pending

    def repeat(self, candidate: Candidate) -> str:
        """Remember what was proposed again, so that it is listed, and say what came of it."""
        trial = self._forms.get(self._dialect.form(candidate))
        if trial is None:
            return "it is already proposed, and its result is not known yet"
        self._repeated = [*(t for t in self._repeated if t is not trial), trial][-MOST_REPEATED:]
        same = "" if trial.candidate == candidate else ", as the same program in another spelling"
        return f"it was tried before{same}: {speedup(trial)}"

    def propose(self, candidate: Candidate) -> None:
        """Remember what has been proposed and not judged."""
        self._pending[self._dialect.form(candidate)] = candidate

    def refuse(self, candidate: Candidate, code: str, reason: str) -> None:
        """Remember a candidate that the space refused."""
        self._fail(Failure(self._line(candidate), "illegal", code, _detail(reason)))

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of proposals. What was proposed and dropped is forgotten."""
        self._pending.clear()
        for trial in trials:
            self._forms.setdefault(self._dialect.form(trial.candidate), trial)
            self.count += 1
            self._latest = [*self._latest, trial][-self._history :]
            if trial.objective is not None:
                insort(self._best, (-trial.objective, trial.number, trial), key=lambda x: x[:2])
                del self._best[max(self._history, self._parents) :]
                continue
            self._fail(failure_of(self._line(trial.candidate), trial))

    def _fail(self, failure: Failure) -> None:
        self._failures = [*self._failures, failure][-MOST_FAILURES:]

    def parent(self, rng: random.Random, *, greedy: bool) -> tuple[Candidate | None, Parent | None]:
        """The candidate to start from, and how it is shown: the best, or where that is not asked
        for one of the best, the better the likelier; before anything passed the space's start.
        """
        if self._best:
            rank = 0
            while not greedy and rank + 1 < min(self._parents, len(self._best)):
                if rng.random() < 0.5:
                    break
                rank += 1
            trial = self._best[rank][2]
            candidate, result = trial.candidate, f"speedup {speedup(trial)}"
        else:
            start = self._dialect.start()
            if start is None:
                return None, None
            candidate, result = start, "the starting point"
        block = fenced(self._dialect.show(candidate), self._dialect.fence)
        return candidate, Parent(candidate.key[:8], result, block)

    def tried(self) -> list[Row]:
        """The best, the latest and those proposed again, best first."""
        half = -(-self._history // 2)
        chosen = {trial.number: trial for _, _, trial in self._best[:half]}
        chosen |= {trial.number: trial for trial in self._repeated}
        for trial in reversed(self._latest):
            if len(chosen) < self._history:
                chosen[trial.number] = trial
        return [
            Row(self._line(trial.candidate), speedup(trial))
            for trial in sorted(chosen.values(), key=_order)
        ]

    def pending(self) -> list[str]:
        """What has been proposed and not judged, in order."""
        return [self._line(candidate) for candidate in self._pending.values()]

    def failures(self) -> list[Failure]:
        """The latest failures, latest first."""
        return self._failures[::-1]

    def _line(self, candidate: Candidate) -> str:
        line = self._lines.get(candidate.key)
        if line is None:
            text = self._dialect.brief(candidate)
            line = text if len(text) <= MOST_LINE else f"{text[:MOST_LINE]} …"
            self._lines[candidate.key] = line
        return line


def _order(trial: Trial) -> tuple[bool, float, int]:
    return trial.objective is None, -(trial.objective or 0.0), trial.number


def speedup(trial: Trial) -> str:
    """A trial's estimated speedup as ``1.234x``, or its status."""
    if trial.objective is None:
        return str(trial.verdicts[0][1].status)
    return f"{min(2.0 ** min(trial.objective, 60.0), MOST_SPEEDUP):.4g}x"


def _detail(text: str) -> str:
    """The two ends of a text, fenced: a compiler's first error and a program's last words."""
    text = text.strip()
    if len(text) > MOST_DETAIL:
        half = MOST_DETAIL // 2
        text = f"{text[:half]}\n…\n{text[-half:]}"
    return fenced(text, "text") if text else ""


def failure_of(text: str, trial: Trial) -> Failure:
    """What the judge said of a trial that failed; ``text`` is how the candidate is listed."""
    verdict = trial.verdicts[0][1]
    said = "\n".join(part for part in (verdict.evidence, verdict.log) if part)
    return Failure(text, str(verdict.status), verdict.code, _detail(said))
