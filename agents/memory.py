"""What a driver that talks remembers of the trials it was told, and how it is put into a prompt.

A function of the trials and of the model's own replies: nothing else gets in, so that a campaign
that goes on after an interruption asks the same questions.
"""

from __future__ import annotations

import random
from bisect import insort
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernelwright.agents.context.safe import clean, one_line
from kernelwright.agents.context.variety import Archive, spread
from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.dialects.fences import fenced
from kernelwright.env.types import Candidate, Verdict
from kernelwright.search.trial import Trial

MOST_FAILURES = 4
MOST_BLOCKS = 256
MOST_REPEATED = 4
MOST_DETAIL = 600
MOST_LINE = 1200
MOST_SPEEDUP = 2.0**60


@dataclass(frozen=True, slots=True)
class Row:
    """A tried candidate in a list; ``number`` is its trial's."""

    text: str
    result: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that failed, or a reply that the space refused."""

    text: str
    status: str
    code: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Parent:
    """The program that a model is asked to improve; ``block`` is fenced."""

    key: str
    result: str
    block: str
    candidate: Candidate | None = None


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
        self._failed: Counter[str] = Counter()
        self._varied = Archive(max(history, parents))
        self._pending: dict[str, Candidate] = {}  # by form, as what was tried
        self._forms: dict[str, Trial] = {}
        self._repeated: list[Trial] = []
        self._tried: list[Row] | None = None
        self._lines: dict[str, str] = {}
        # How a candidate is shown whole.
        self.block = lru_cache(MOST_BLOCKS)(self._block)
        self.count = 0

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether the same program was tried or has been proposed, however it is spelled."""
        form = self._dialect.form(candidate)
        return form in self._forms or form in self._pending

    def has_tried(self, candidate: Candidate) -> bool:
        """Whether the same program was judged."""
        return self._dialect.form(candidate) in self._forms

    def candidates(self) -> Iterator[Candidate]:
        """What was tried, and what is proposed and not judged."""
        yield from (trial.candidate for trial in self._forms.values())
        yield from self._pending.values()

    def repeat(self, candidate: Candidate) -> str:
        """Remember what was proposed again, so that it is listed, and say what came of it."""
        trial = self._forms.get(self._dialect.form(candidate))
        if trial is None:
            return "it is already proposed, and its result is not known yet"
        self._tried = None
        self._repeated = [*(t for t in self._repeated if t is not trial), trial][-MOST_REPEATED:]
        same = "" if trial.candidate == candidate else ", as the same program in another spelling"
        return f"it was tried before{same}: {speedup(trial)}"

    def propose(self, candidate: Candidate) -> None:
        """Remember what has been proposed and not judged."""
        self._pending[self._dialect.form(candidate)] = candidate

    def refuse(self, candidate: Candidate, code: str, reason: str) -> None:
        """Remember a candidate that the space refused."""
        self._fail(Failure(self.line(candidate), "illegal", code, _detail(reason)))

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of proposals. What was proposed and dropped is forgotten."""
        self._pending.clear()
        self._tried = None
        for trial in trials:
            self._forms.setdefault(self._dialect.form(trial.candidate), trial)
            self.count += 1
            self._latest = [*self._latest, trial][-self._history :]
            if trial.objective is not None:
                self._varied.add(trial)
                insort(self._best, (-trial.objective, trial.number, trial), key=lambda x: x[:2])
                del self._best[max(self._history, self._parents) :]
                continue
            self._fail(failure_of(self.line(trial.candidate), trial))

    def _fail(self, failure: Failure) -> None:
        code = f" ({failure.code})" if failure.code else ""
        self._failed[f"{failure.status}{code}"] += 1
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
            return candidate, self._shown(candidate, result)
        return self.start()

    def start(self) -> tuple[Candidate | None, Parent | None]:
        """The space's start and how it is shown, if it has one."""
        start = self._dialect.start()
        return (None, None) if start is None else (start, self._shown(start, "the starting point"))

    def _shown(self, candidate: Candidate, result: str) -> Parent:
        return Parent(candidate.key[:8], result, self.block(candidate), candidate)

    def _block(self, candidate: Candidate) -> str:
        return fenced(clean(self._dialect.show(candidate)), self._dialect.fence)

    def verdict(self, candidate: Candidate | None) -> Verdict | None:
        """What the judge said of a candidate, None if it was not tried."""
        trial = None if candidate is None else self._forms.get(self._dialect.form(candidate))
        return None if trial is None else trial.verdicts[0][1]

    def inspirations(self, most: int, *, but: Candidate | None = None) -> list[Parent]:
        """Good programs beside the parent: the best, then those that differ most."""
        good = [*(trial for _, _, trial in self._best), *self._varied.trials]
        chosen = spread(good, most, but=() if but is None else (but,))
        return [self._shown(t.candidate, f"speedup {speedup(t)}") for t in chosen]

    def tried(self) -> list[Row]:
        """The best, those proposed again, one in eight that differ from the best, and the latest;
        best first.
        """
        if self._tried is None:
            self._tried = self._listed()
        return self._tried

    def _listed(self) -> list[Row]:
        half, other = -(-self._history // 2), self._history // 8
        chosen = {trial.number: trial for _, _, trial in self._best[:half]}
        chosen |= {trial.number: trial for trial in self._repeated}
        best = [trial.candidate for trial in chosen.values()]
        chosen |= {t.number: t for t in spread(self._varied.trials, other, but=best)}
        for trial in reversed(self._latest):
            if len(chosen) < self._history:
                chosen[trial.number] = trial
        return [
            Row(self.line(trial.candidate), speedup(trial), trial.number)
            for trial in sorted(chosen.values(), key=_order)
        ]

    def pending(self) -> list[str]:
        """What has been proposed and not judged, in order."""
        return [self.line(candidate) for candidate in self._pending.values()]

    def failures(self) -> list[Failure]:
        """The latest failures, latest first."""
        return self._failures[::-1]

    def failed(self) -> list[tuple[str, int]]:
        """How often each class of failure came up, the most frequent first."""
        return sorted(self._failed.items(), key=lambda item: (-item[1], item[0]))

    def line(self, candidate: Candidate) -> str:
        """A candidate in one line that may stand between backticks."""
        line = self._lines.get(candidate.key)
        if line is None:
            line = self._lines[candidate.key] = one_line(self._dialect.brief(candidate), MOST_LINE)
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
    text = clean(text.strip(), MOST_DETAIL).strip()
    return fenced(text, "text") if text else ""


def failure_of(text: str, trial: Trial) -> Failure:
    """What the judge said of a trial that failed; ``text`` is how the candidate is listed."""
    verdict = trial.verdicts[0][1]
    said = "\n".join(part for part in (verdict.evidence, verdict.log) if part)
    return Failure(text, str(verdict.status), verdict.code, _detail(said))
