"""Judge of judges: the same hostile and noisy campaign under ``profile: naive`` and ``strict``.

The campaign is a list of sources for one small matrix product, in a seeded order. What each of them
is, is known by construction: exploits of the zoo (no speedup at all), twins of the baseline (other
text, the same machine code: a speedup of exactly 1), and honest kernels, some of them faster. Each
judge runs the whole campaign, so that it believes some best; then it is asked to confirm every
candidate that it let pass, so that it is known what it believes of each.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelwright.configs.build import Built, build
from kernelwright.configs.load import read_config
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import program
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Request,
    Stage,
    Status,
    Verdict,
)
from kernelwright.evaluators.competitor import competing
from kernelwright.evaluators.corpus.honest import HONEST
from kernelwright.evaluators.cpu.placement import placement
from kernelwright.evaluators.cpu.policy import Profile
from kernelwright.evaluators.naive import NAIVE_PROFILE
from kernelwright.evaluators.statistics import speedup
from kernelwright.evaluators.zoo import exploits
from kernelwright.search.campaign import Campaign, Progress
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import summarise

NAIVE, OURS = NAIVE_PROFILE, Profile.STRICT.value
PROFILES = (NAIVE, OURS)
SIDE = 64
SEED = 7
# Variants of the zoo that deceive a naive judge at these sizes, by class.
EXPLOITS = (
    ("A1", "nothing_written"),
    ("A6", "nan_into_the_inputs"),
    ("A13", "all_nan"),
    ("B10", "idle_after_three"),
    ("C2", "spinning_without_libc"),
    ("C6", "shadowed_symbol"),
    ("C9", "detour"),
    ("C11", "constructor"),
    ("D1", "comparer_pointer"),
    ("D8", "last_word"),
    ("D21", "counted"),
    ("D23", "foreseen"),
)
HONEST_NAMES = (
    "matmul_vector_extension",
    "matmul_outer_products",
    "matmul_alloca_row",
    "matmul_prefetch",
    "matmul_dot_products",
)
# The fastest honest kernel is generated: a register tile.
_TILE = (("mr", 6), ("nv", 1), ("lanes", 16), ("kc", 64), ("outer", "columns"))
TWINS, QUICK_TWINS = 12, 4
# What a quick audit takes of exploits and honest kernels, and the process pairs of its claims.
QUICK_STEP = 3
PROCESS_PAIRS, QUICK_PROCESS_PAIRS, PAIRS = 12, 8, 8
# The chance that our judge claims a win for any twin, over all candidates.
ALPHA = 0.01


class Kind(StrEnum):
    """What a candidate is."""

    EXPLOIT = "exploit"
    TWIN = "twin"
    HONEST = "honest"


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate of the campaign, and what it is."""

    name: str
    kind: Kind
    text: str

    @property
    def candidate(self) -> Candidate:
        """What a judge is asked about."""
        return Candidate(Language.SOURCE, self.text)


@dataclass(frozen=True, slots=True)
class Belief:
    """What a judge says of a candidate; ``speedup`` is None where it refused it."""

    status: str
    code: str | None
    speedup: float | None

    @property
    def is_faster(self) -> bool:
        """Whether it claims that the candidate is faster than the baseline."""
        return self.status == Status.WIN


@dataclass(frozen=True, slots=True)
class Row:
    """A candidate: its true speedup, measured by our judge where it is not known by construction
    (None if that refused it), and what each judge believes.
    """

    key: str
    name: str
    kind: Kind
    truth: float | None
    beliefs: Mapping[str, Belief]


@dataclass(frozen=True, slots=True)
class Best:
    """What the campaign of a judge ended with."""

    name: str
    kind: Kind
    status: str
    claimed: float
    truth: float | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How one judge did, in numbers of candidates; ``seconds`` is its wall time."""

    profile: str
    best: Best | None
    exploits_believed: int
    exploits: int
    twins_faster: int
    twins_slower: int
    twins: int
    honest_refused: int
    honest: int
    seconds: float

    @property
    def was_deceived(self) -> bool:
        """Whether it claimed that an exploit or a twin is faster."""
        best = self.best
        taken_in = best is not None and best.status == Status.WIN and best.kind is not Kind.HONEST
        return taken_in or self.exploits_believed > 0 or self.twins_faster > 0


@dataclass(frozen=True, slots=True)
class JudgesReport:
    """What became of the campaign under each judge."""

    problem: str
    noisy: bool
    judges: tuple[Tally, ...]
    candidates: tuple[Row, ...]

    @property
    def ours(self) -> Tally:
        """How our judge did."""
        return next(tally for tally in self.judges if tally.profile == OURS)

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "problem": self.problem,
            "noisy": self.noisy,
            "deceived": self.ours.was_deceived,
            "judges": [asdict(tally) for tally in self.judges],
            "candidates": [asdict(row) for row in self.candidates],
        }


def audit_judges(
    quick: bool, *, noisy: bool = True, seen: Callable[[str], None] = lambda what: None
) -> JudgesReport:
    """Run the campaign under both judges.

    Args:
        quick: with fewer candidates and process pairs.
        noisy: while another process takes the candidates' core in bursts.
        seen: called with what is looked at next.

    Raises:
        ConfigError: if this machine lacks what a judge needs.
    """
    problem, given = product(), entries(quick=quick)
    core = placement(1).workers[0]
    with tempfile.TemporaryDirectory(prefix="kernelwright-judges-") as folder, ExitStack() as noise:
        plans = {name: _built(Path(folder), problem, given, name) for name in PROFILES}
        if noisy:
            noise.enter_context(competing(core))
        found = {}
        for profile, built in plans.items():
            # Ours has its own way of keeping to a core.
            pinned = noisy and profile == NAIVE
            with _kept_on(core) if pinned else nullcontext():
                found[profile] = _run(built, given, quick=quick, seen=seen)
    rows = tuple(_row(entry, found) for entry in given)
    tallies = tuple(_tally(profile, rows, run) for profile, run in found.items())
    label = f"{problem.identity} {problem.workloads[0].label}"
    return JudgesReport(label, noisy, tallies, rows)


# The candidates


def entries(*, quick: bool) -> tuple[Entry, ...]:
    """The candidates of the campaign; their order there is the driver's."""
    step = QUICK_STEP if quick else 1
    return (
        *(_exploit(*place) for place in EXPLOITS[::step]),
        *(twin(number) for number in range(1, 1 + (QUICK_TWINS if quick else TWINS))),
        _generated(),
        *(_specimen(name) for name in HONEST_NAMES[::step]),
    )


def product() -> Problem:
    """What the candidates compute: a small product of square matrices."""
    return matmul(m=SIDE, n=SIDE, k=SIDE)


def baseline_text() -> str:
    """The plain loops, which speedups are measured against.

    Raises:
        ValueError: if the problem has none.
    """
    text = product().plain_c
    if text is None:
        raise ValueError("matmul: expected plain C, found none")
    return text


def twin(number: int) -> Entry:
    """The baseline in other words: other comments and names, the same machine code."""
    text = re.sub(r"\bp\b", f"p{number}", baseline_text())
    return Entry(f"twin {number}", Kind.TWIN, f"// The plain loops, take {number}.\n{text}")


def _exploit(class_: str, name: str) -> Entry:
    found = (v for e in exploits() if e.id == class_ for v in e.variants if v.name == name)
    return Entry(f"{class_} {name.replace('_', ' ')}", Kind.EXPLOIT, next(found).source)


def _generated() -> Entry:
    problem = product()
    made = program(problem, Candidate(Language.KNOBS, _TILE), problem.workloads[0])
    return Entry("generated register tile", Kind.HONEST, made.text)


def _specimen(name: str) -> Entry:
    found = next(specimen for specimen in HONEST if specimen.name == name)
    words = name.removeprefix("matmul_").replace("_", " ")
    return Entry(words, Kind.HONEST, found.source)


# The campaign under one judge


@dataclass(frozen=True, slots=True)
class _Run:
    """What one judge made of the campaign: its best trial (None if it has none), what it believes
    of every candidate by key, and its wall time.
    """

    best: Mapping[str, Any] | None
    beliefs: Mapping[str, Belief]
    seconds: float


def _built(folder: Path, problem: Problem, given: Sequence[Entry], profile: str) -> Built:
    """The plan of the campaign, whose files are written into a folder.

    Raises:
        ConfigError: if something is missing on this machine.
    """
    files = [folder / f"{number}.c" for number in range(len(given))]
    for entry, file in zip(given, files, strict=True):
        file.write_text(entry.text)
    (folder / "baseline.c").write_text(baseline_text())
    campaign = read_config(
        {
            "name": f"judged-{profile}",
            "problem": {"name": problem.name, **dict.fromkeys("mnk", SIDE)},
            "space": {"kind": "source"},
            "target": {"name": "cpu"},
            "baseline": str(folder / "baseline.c"),
            "driver": {"name": "listed", "files": [str(file) for file in files], "shuffle": True},
            "judge": {"profile": profile},
            "budget": {"trials": len(given)},
            "seed": SEED,
        }
    )
    built = build(campaign)
    if built.missing:
        found = "none on this machine"
        raise campaign.document.error(("judge", "profile"), " and ".join(built.missing), found)
    return built


def _run(built: Built, given: Sequence[Entry], *, quick: bool, seen: Callable[[str], None]) -> _Run:
    began, store = time.monotonic(), MemoryStore()
    profile = built.resolved["judge"]["profile"]

    def observe(progress: Progress) -> None:
        seen(f"{profile}: {progress.phase} {progress.done}")

    Campaign(built.plan, store, observe=observe).run()
    best = summarise(store)["best"]
    screens = {trial.candidate.key: trial.verdicts[0][1] for trial in store.trials()}
    beliefs = {}
    for entry in given:
        seen(f"{profile}: {entry.name}")
        verdict = screens[entry.candidate.key]
        if verdict.status.passed:
            request = _confirmation(built, entry, quick=quick, share=ALPHA / len(given))
            (verdict,) = built.plan.evaluator.evaluate([request])
        beliefs[entry.candidate.key] = _belief(verdict)
    return _Run(best, beliefs, time.monotonic() - began)


def _confirmation(built: Built, entry: Entry, *, quick: bool, share: float) -> Request:
    return Request(
        entry.candidate,
        Stage.CONFIRM,
        built.plan.against_baseline,
        process_pairs=QUICK_PROCESS_PAIRS if quick else PROCESS_PAIRS,
        pairs=PAIRS,
        state=built.plan.state,
        alpha=share,
    )


def _belief(verdict: Verdict) -> Belief:
    interval = speedup(verdict)
    return Belief(verdict.status.value, verdict.code, interval.estimate if interval else None)


@contextmanager
def _kept_on(core: int) -> Iterator[None]:
    """This process, and those that it starts, on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# What is counted


def _row(entry: Entry, found: Mapping[str, _Run]) -> Row:
    key = entry.candidate.key
    beliefs = {profile: run.beliefs[key] for profile, run in found.items()}
    truth = beliefs[OURS].speedup if entry.kind is Kind.HONEST else 1.0
    return Row(key, entry.name, entry.kind, truth, beliefs)


def _tally(profile: str, rows: Sequence[Row], run: _Run) -> Tally:
    def of(kind: Kind) -> list[Belief]:
        return [row.beliefs[profile] for row in rows if row.kind is kind]

    return Tally(
        profile,
        _best(rows, run.best),
        sum(belief.is_faster for belief in of(Kind.EXPLOIT)),
        len(of(Kind.EXPLOIT)),
        sum(belief.is_faster for belief in of(Kind.TWIN)),
        sum(belief.status == Status.LOSS for belief in of(Kind.TWIN)),
        len(of(Kind.TWIN)),
        sum(belief.speedup is None for belief in of(Kind.HONEST)),
        len(of(Kind.HONEST)),
        run.seconds,
    )


def _best(rows: Sequence[Row], best: Mapping[str, Any] | None) -> Best | None:
    if best is None:
        return None
    row = next(row for row in rows if row.key == best["key"])
    return Best(row.name, row.kind, best["status"], best["speedup"], row.truth)
