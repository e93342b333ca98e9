"""What a judge makes of the corpus: impostors that a problem lets pass, mutants that it kills,
honest kernels that it refuses, by problem of the catalogue.

Everything is judged as in a campaign: screened, and what passes is confirmed, with as many process
pairs as there are kinds of inputs. A claim stands on a confirmation, so what that kills is killed;
how many were seen already by the screen is counted too, because only those cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np

from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import (
    STRESSES,
    Candidate,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Verdict,
)
from kernelwright.evaluators.corpus.draws import draws, instances
from kernelwright.evaluators.corpus.honest import HONEST
from kernelwright.evaluators.corpus.impostors import passing_impostors
from kernelwright.evaluators.corpus.mutants import MUTANTS, Mutant
from kernelwright.evaluators.corpus.proof import unsound
from kernelwright.evaluators.corpus.specimen import Named, Specimen
from kernelwright.evaluators.cpu.target import unscheduled_program
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.target import MakeJudge

SCREEN_PAIRS, CONFIRM_PAIRS = 3, 3
# One for each kind of inputs: those that problems name, mixtures of them, and whole numbers.
PROCESS_PAIRS = 2 + len(STRESSES)
# A quick audit takes so many of each kind and problem, spread over all that there are.
QUICK = 2
ERROR = "error"

Kernel = TypeVar("Kernel", Specimen, Mutant)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said of one kernel: its last verdict, and at which stage.

    ``status`` is ``error`` where it could not be asked. A kernel has ``passed`` if nothing was
    found wrong with it, though no claim be made of its time; it is ``unjudged`` if the judge
    failed, and a mutant if it was refused for something else than what it computes: it does not
    build.
    """

    name: str
    stage: Stage
    status: str
    code: str
    evidence: str
    passed: bool
    unjudged: bool

    def __str__(self) -> str:
        words = f"{self.name}: {self.status} {self.code} ({self.stage})".replace("  ", " ")
        return f"{words}: {self.evidence}" if self.evidence else words


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """A problem of the catalogue: ``impostors`` that pass on it, and what was said of its mutants
    and honest kernels, of these apart those that ``reassociate`` sums.
    """

    problem: str
    impostors: tuple[str, ...]
    mutants: tuple[Judged, ...]
    honest: tuple[Judged, ...]
    reassociated: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class CorrectnessReport:
    """The rows of an audit; rates have Wilson's limits and leave out what could not be judged.

    ``unsound`` says which kernels are not what the corpus says, whatever the judge said of them.
    """

    rows: tuple[ProblemRow, ...]
    unsound: tuple[str, ...] = ()

    @property
    def impostors(self) -> tuple[str, ...]:
        """The impostors that pass, as ``problem: extents: name``; there must be none."""
        return tuple(f"{row.problem}: {name}" for row in self.rows for name in row.impostors)

    @property
    def killed(self) -> Rate:
        """How many mutants were refused."""
        return _refused(self._all("mutants"))

    @property
    def killed_by_screen(self) -> Rate:
        """How many mutants the screen alone refused."""
        judged = [one for one in self._all("mutants") if not one.unjudged]
        return Rate(sum(_seen_by_screen(one) for one in judged), len(judged))

    @property
    def survivors(self) -> tuple[Judged, ...]:
        """The mutants that passed."""
        return tuple(one for one in self._all("mutants") if one.passed)

    @property
    def rejected(self) -> Rate:
        """How many honest kernels were refused, reassociated ones among them."""
        return _refused([*self._all("honest"), *self._all("reassociated")])

    @property
    def reassociated(self) -> Rate:
        """How many kernels that reorder sums passed."""
        found = self._all("reassociated")
        return Rate(sum(one.passed for one in found), sum(not one.unjudged for one in found))

    @property
    def refused(self) -> tuple[Judged, ...]:
        """The honest kernels that did not pass."""
        both = [*self._all("honest"), *self._all("reassociated")]
        return tuple(one for one in both if not one.passed and not one.unjudged)

    @property
    def unjudged(self) -> tuple[Judged, ...]:
        """What could not be judged."""
        kinds = ("mutants", "honest", "reassociated")
        return tuple(one for kind in kinds for one in self._all(kind) if one.unjudged)

    @property
    def is_clean(self) -> bool:
        """Whether no impostor and no mutant passed, every honest kernel did, all were judged, and
        the corpus is sound.
        """
        wrong = self.impostors or self.survivors or self.refused or self.unjudged or self.unsound
        return not wrong

    def _all(self, kind: str) -> list[Judged]:
        return [one for row in self.rows for one in getattr(row, kind)]

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object: counts, limits, and the names of what went wrong."""
        return {
            "mutants": self.killed.total,
            "killed": self.killed.count,
            "killed_low": self.killed.low,
            "killed_by_screen": self.killed_by_screen.count,
            "honest": self.rejected.total,
            "rejected": self.rejected.count,
            "rejected_high": self.rejected.high,
            "reassociated": self.reassociated.total,
            "reassociated_passed": self.reassociated.count,
            "impostors": list(self.impostors),
            "survivors": [asdict(one) for one in self.survivors],
            "refused": [asdict(one) for one in self.refused],
            "unjudged": [asdict(one) for one in self.unjudged],
            "unsound": list(self.unsound),
            "rows": {
                row.problem: {
                    "mutants": _counts(row.mutants, passed=False),
                    "honest": _counts(row.honest, passed=True),
                    "reassociated": _counts(row.reassociated, passed=True),
                }
                for row in self.rows
            },
        }

    def text(self) -> str:
        """A table by problem, the rates, and what went wrong, by name."""
        head = f"{'problem':<14}{'mutants killed':>16}{'honest passed':>16}{'reassociated':>16}"
        lines = [head]
        for row in self.rows:
            parts = (
                _counts(row.mutants, passed=False),
                _counts(row.honest, passed=True),
                _counts(row.reassociated, passed=True),
            )
            shown = "".join(f"{f'{count}/{total}':>16}" for count, total in parts)
            lines.append(f"{row.problem:<14}{shown}")
        lines += [
            "",
            f"mutants killed       {self.killed}",
            f"  by the screen      {self.killed_by_screen}",
            f"honest rejected      {self.rejected}",
            f"reassociated passed  {self.reassociated}",
        ]
        for title, found in (
            ("impostor passes", self.impostors),
            ("mutant survives", self.survivors),
            ("honest kernel refused", self.refused),
            ("not judged", self.unjudged),
            ("unsound corpus", self.unsound),
        ):
            lines += [f"{title}: {one}" for one in found]
        return "\n".join(lines)


def _refused(found: Sequence[Judged]) -> Rate:
    judged = [one for one in found if not one.unjudged]
    return Rate(sum(not one.passed for one in judged), len(judged))


def _seen_by_screen(one: Judged) -> bool:
    return not one.passed and one.stage is Stage.SCREEN


def _counts(found: Sequence[Judged], *, passed: bool) -> tuple[int, int]:
    judged = [one for one in found if not one.unjudged]
    return sum(one.passed is passed for one in judged), len(judged)


def audit_correctness(
    quick: bool,
    judge: MakeJudge,
    *,
    honest: Sequence[Specimen] | None = None,
    mutants: Sequence[Mutant] | None = None,
    seen: Callable[[Judged], None] = lambda _: None,
) -> CorrectnessReport:
    """Ask a judge about the corpus, and prove that the corpus is what it says.

    Args:
        quick: a few of each kind and problem, screened only, and nothing is proved.
        judge: makes the judge that is audited, of a problem.
        honest: what it must pass; all of the corpus unless given.
        mutants: what it must refuse; all of the corpus unless given.
        seen: is told each answer when it is there.

    Raises:
        BuildError: if there is no compiler to prove anything with.
    """
    good = HONEST if honest is None else tuple(honest)
    bad = MUTANTS if mutants is None else tuple(mutants)
    judges = _Judges(judge, confirms=not quick, seen=seen)
    rows = []
    names = {one.problem.name for one in good} | {one.problem.name for one in bad}
    for name in sorted(names):
        of_problem = [one for one in good if one.problem.name == name]
        wrong = [one for one in bad if one.problem.name == name]
        ordered = [one for one in of_problem if "reassociated" not in one.tags]
        others = [one for one in of_problem if "reassociated" in one.tags]
        if quick:
            wrong, ordered, others = (_spread(wrong), _spread(ordered), _spread(others))
        rows.append(
            ProblemRow(
                name,
                _impostors(
                    [one.problem for one in wrong] + [one.problem for one in ordered + others]
                ),
                tuple(judges.judged(one, DEFAULT_FLAGS) for one in wrong),
                tuple(judges.judged(one, (*DEFAULT_FLAGS, *one.flags)) for one in ordered),
                tuple(judges.judged(one, (*DEFAULT_FLAGS, *one.flags)) for one in others),
            )
        )
    proofs = () if quick else unsound(good, bad, find_toolchain())
    return CorrectnessReport(tuple(rows), tuple(proofs))


def _spread(found: Sequence[Kernel]) -> list[Kernel]:
    """A few of them, from all parts of the list."""
    step = max(1, len(found) // QUICK)
    return list(found[step // 2 :: step][:QUICK])


def _impostors(problems: Sequence[Named]) -> tuple[str, ...]:
    """The impostors that pass on any of a problem's shapes in the corpus; of a range on the
    greatest extents, because of a single element the mean is the answer.
    """
    rng = np.random.default_rng()
    out = list[str]()
    for named in sorted(set(problems), key=str):
        problem = named.make()
        *_, workload = instances(problem, rng)[:2]
        outputs = [spec for spec in problem.tensors if spec.role == "output"]
        shapes = {spec.name: shape_of(spec, workload.fixed) for spec in outputs}
        given = [draw.arrays for draw in draws(problem, workload, rng)]
        out += [f"{workload.label}: {name}" for name in passing_impostors(problem, given, shapes)]
    return tuple(out)


class _Judges:
    """Judges by problem, each made once."""

    def __init__(self, make: MakeJudge, *, confirms: bool, seen: Callable[[Judged], None]) -> None:
        self._make, self._confirms, self._seen = make, confirms, seen
        self._known: dict[tuple[Named, int, tuple[str, ...]], Evaluator] = {}

    def judged(self, one: Specimen | Mutant, flags: tuple[str, ...]) -> Judged:
        """What the judge says of a kernel. Whatever it raises is in it, as an ``error``."""
        try:
            place = (one.problem, one.threads, flags)
            if place not in self._known:
                problem = one.problem.make()
                self._known[place] = self._make(problem, threads=one.threads, flags=flags)
            for stage, verdict in self._verdicts(self._known[place], one):
                status = verdict.status
                useless = (Status.BUILD_ERROR, Status.BROKEN)
                found = Judged(
                    one.name,
                    stage,
                    status.value,
                    verdict.code or "",
                    verdict.evidence,
                    passed=status.passed or status is Status.UNSTABLE,
                    unjudged=status in (useless if isinstance(one, Mutant) else useless[1:]),
                )
        except Exception as error:  # noqa: BLE001 - an audit without the row would look like a pass
            said = f"{type(error).__name__}: {error}"
            found = Judged(one.name, Stage.SCREEN, ERROR, "", said, passed=False, unjudged=True)
        self._seen(found)
        return found

    def _verdicts(
        self, judge: Evaluator, one: Specimen | Mutant
    ) -> Iterator[tuple[Stage, Verdict]]:
        """The verdict of the screen and, if it passed, of the confirmation."""
        baseline = Reference(Role.BASELINE, unscheduled_program(one.problem.make()))
        candidate: Candidate = one.candidate
        screen = Request(candidate, Stage.SCREEN, (baseline,), pairs=SCREEN_PAIRS)
        (verdict,) = judge.evaluate([screen])
        yield Stage.SCREEN, verdict
        if verdict.status.passed and self._confirms:
            confirm = Request(
                candidate,
                Stage.CONFIRM,
                (baseline,),
                process_pairs=PROCESS_PAIRS,
                pairs=CONFIRM_PAIRS,
            )
            (verdict,) = judge.evaluate([confirm])
            yield Stage.CONFIRM, verdict
