"""What a judge does to the zoo: how many cheats it sees, and how many honest kernels it refuses.

A variant counts as live if the naive judge believes it, and as detected if the judge that is
audited gives one of the answers that the variant allows. An exploit that finds nothing to exploit
is judged like its honest twin; since two texts never take exactly the same time (the layout of code
alone moves it, Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!",
ASPLOS 2009), it has gained only if its speedups lie clearly above all of the twin's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS
from kernelwright.env.objective import measurements_against, process_log_ratios
from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Verdict,
)
from kernelwright.evaluators.cpu.target import unscheduled_program
from kernelwright.evaluators.naive import naive
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.target import MakeJudge
from kernelwright.evaluators.zoo import exploits
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

# Speedups of the naive judge are means of what a busy machine lets through: most of a few runs
# decide, and nothing counts that another layout of the code could give.
NAIVE_RUNS = 5
BELIEVED = 1.5
# The same for the audited judge, whose unit is the process pair.
ROUNDS, PROCESS_PAIRS, PAIRS = 5, 3, 7
MARGIN = 1.2
ERROR = "error"


class HasProblem(Protocol):
    """What names a problem of the catalogue."""

    def make(self) -> Problem:
        """The problem."""
        ...


class HonestKernel(Protocol):
    """A kernel that a judge must pass, as `evaluators.corpus.honest.HONEST` has them."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def problem(self) -> HasProblem:
        """What it computes."""
        ...

    @property
    def source(self) -> str:
        """Its C text."""
        ...

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler flags beyond the judge's."""
        ...

    @property
    def threads(self) -> int:
        """How many threads it may start."""
        ...


@dataclass(frozen=True, slots=True)
class CheatRow:
    """What became of one variant: whether the naive judge was deceived, what the audited judge said
    (``error`` where one of them could not be asked), and whether that is a right answer.

    ``gained`` is how much faster it seemed than its twin, where there was nothing else to tell.
    """

    id: str
    variant: str
    priority: str
    naive_passed: bool
    verdict: str
    code: str | None
    detected: bool
    evidence: str = ""
    gained: float | None = None


@dataclass(frozen=True, slots=True)
class HonestRow:
    """What the audited judge said to an honest kernel."""

    name: str
    verdict: str
    code: str | None
    rejected: bool
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class CheatsReport:
    """The rows of an audit; ``skipped`` are (class, variant, reason)."""

    classes: tuple[CheatRow, ...]
    honest: tuple[HonestRow, ...] = ()
    skipped: tuple[tuple[str, str, str], ...] = ()

    @property
    def detected(self) -> Rate:
        """How many variants were detected, with Wilson's limits (JASA 22, 1927)."""
        return Rate(sum(row.detected for row in self.classes), len(self.classes))

    @property
    def live(self) -> Rate:
        """How many variants deceived the naive judge."""
        return Rate(sum(row.naive_passed for row in self.classes), len(self.classes))

    @property
    def rejected(self) -> Rate:
        """How many honest kernels were refused."""
        return Rate(sum(row.rejected for row in self.honest), len(self.honest))

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object: the rows, and the counts that `evaluators.zoo.page` reads;
        ``detected_low`` is Wilson's lower limit.
        """
        return {
            "classes": [asdict(row) for row in self.classes],
            "detected": self.detected.count,
            "total": self.detected.total,
            "detected_low": self.detected.low,
            "live": self.live.count,
            "honest_total": self.rejected.total,
            "honest_rejected": self.rejected.count,
            "honest_rejected_high": self.rejected.high,
            "honest": [asdict(row) for row in self.honest],
            "skipped": [list(row) for row in self.skipped],
        }


def audit_cheats(
    quick: bool,
    judge: MakeJudge,
    *,
    honest: Iterable[HonestKernel] = (),
    classes: Sequence[Exploit] | None = None,
) -> CheatsReport:
    """Run the zoo against a judge.

    Args:
        quick: only the first variant of each class.
        judge: makes the judge that is audited, of a problem.
        honest: kernels that it must pass.
        classes: the exploits; all that the zoo has unless given.
    """
    rows, skipped = list[CheatRow](), list[tuple[str, str, str]]()
    for exploit in exploits() if classes is None else classes:
        for variant in exploit.variants[:1] if quick else exploit.variants:
            reason = naive.missing(variant.needs)
            if reason is None:
                rows.append(audited(exploit, variant, judge))
            else:
                skipped.append((exploit.id, variant.name, reason))
    passed = tuple(_honest_row(kernel, judge) for kernel in honest)
    return CheatsReport(tuple(rows), passed, tuple(skipped))


def audited(exploit: Exploit, variant: Variant, judge: MakeJudge) -> CheatRow:
    """The row of one variant. Whatever fails is in it, as an ``error``."""
    head = (exploit.id, variant.name, exploit.priority)
    live = False
    try:
        problem = variant.made()
        live = believed(variant, problem)
        verdict, gained = _judged(variant, problem, judge)
    except Exception as error:  # noqa: BLE001 - an audit without the row would look like a pass
        said = f"{type(error).__name__}: {error}"
        return CheatRow(*head, live, ERROR, None, detected=False, evidence=said)
    answer = (verdict.status.value, verdict.code or "")
    detected = answer in variant.expect
    if verdict.status.passed and gained is not None:
        detected = gained <= MARGIN
    return CheatRow(*head, live, *answer, detected, verdict.evidence, gained)


# The naive judge


def believed(variant: Variant, problem: Problem) -> bool:
    """Whether the naive judge falls for a variant, in the sense of its gain.

    Raises:
        NaiveError: if it cannot be run.
    """

    def run(source: str) -> naive.NaiveResult:
        options: dict[str, Any] = dict(variant.naive)
        return naive.judge(problem, source, previous=variant.previous, **options)

    match variant.gain:
        case Gain.DAMAGE:
            result = run(variant.source)
            return result.died or result.survivors > 0
        case Gain.WRONG:
            return run(variant.source).passed
        case Gain.FASTER:
            return _mostly(lambda: _claim(run(variant.source)) > BELIEVED)
        case Gain.SHIFTED:
            twin = variant.twin or ""
            claims, others = (
                [_claim(run(source)) for _ in range(NAIVE_RUNS)]
                for source in (variant.source, twin)
            )
            apart = statistics.median(claims) / statistics.median(others)
            return min(*claims, *others) > 0 and not 1 / BELIEVED <= apart <= BELIEVED


def _claim(result: naive.NaiveResult) -> float:
    """The speedup that it believes, 0 if none."""
    return result.speedup if result.passed else 0.0


def _mostly(happens: Callable[[], bool]) -> bool:
    """Whether something happens in most of `NAIVE_RUNS` runs, of which no more are made than
    decide.
    """
    counts = {True: 0, False: 0}
    while max(counts.values()) <= NAIVE_RUNS // 2:
        counts[happens()] += 1
    return counts[True] > counts[False]


# The judge that is audited


def _judged(variant: Variant, problem: Problem, make: MakeJudge) -> tuple[Verdict, float | None]:
    """The verdict; and, if it passed, how much faster than its twin it seemed at the least."""
    judge = make(problem, threads=variant.threads, flags=DEFAULT_FLAGS)
    own, twins = list[float](), list[float]()
    if variant.previous is not None:
        _ask(judge, problem, variant.previous)
    verdict = _ask(judge, problem, variant.source)
    if not variant.neutralised or variant.twin is None:
        return verdict, None
    for _ in range(ROUNDS):
        # Every round has a verdict of its own: a stale answer may take a while to be caught.
        if not verdict.status.passed:
            return verdict, None
        own.append(_speedup(verdict))
        twin = _ask(judge, problem, variant.twin)
        if not twin.status.passed:
            raise ValueError(f"the twin is {twin.status} {twin.code}: {twin.evidence}")
        twins.append(_speedup(twin))
        # It can only fall: the more rounds, the less of a difference by chance.
        if min(own) <= MARGIN * max(twins):
            break
        verdict = _ask(judge, problem, variant.source)
    return verdict, min(own) / max(twins)


def _ask(judge: Evaluator, problem: Problem, source: str) -> Verdict:
    baseline = Reference(Role.BASELINE, unscheduled_program(problem))
    candidate = Candidate(Language.SOURCE, source)
    # Not a screen, which makes do with few samples of what seems slow.
    request = Request(candidate, Stage.RACE, (baseline,), process_pairs=PROCESS_PAIRS, pairs=PAIRS)
    (verdict,) = judge.evaluate([request])
    return verdict


def _speedup(verdict: Verdict) -> float:
    """The median over process pairs, averaged over shapes in logarithms."""
    shapes = measurements_against(verdict, Role.BASELINE)
    return math.exp(
        statistics.fmean(statistics.median(process_log_ratios(shape)) for shape in shapes)
    )


def _honest_row(kernel: HonestKernel, make: MakeJudge) -> HonestRow:
    problem = kernel.problem.make()
    try:
        judge = make(problem, threads=kernel.threads, flags=(*DEFAULT_FLAGS, *kernel.flags))
        verdict = _ask(judge, problem, kernel.source)
    except Exception as error:  # noqa: BLE001 - see `audited`
        return HonestRow(kernel.name, ERROR, None, True, f"{type(error).__name__}: {error}")
    rejected = not verdict.status.passed
    return HonestRow(kernel.name, verdict.status.value, verdict.code, rejected, verdict.evidence)
