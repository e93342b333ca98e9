"""Honest programs in C: those of the simulated model at its best, and the corpus; through the
language's dialect, the build with its rules over binaries, and of a sample through the judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

from agent_worlds import AGENTS, World
from table import Row

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.report import confusion
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems.shapes import Range
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.env.types import Candidate, Reference, Request, Role, Stage, Status
from kernelwright.evaluators.corpus.audit import audit_correctness
from kernelwright.evaluators.corpus.honest import HONEST
from kernelwright.evaluators.corpus.specimen import Named
from kernelwright.evaluators.cpu.build import Builder, BuildFailureError
from kernelwright.evaluators.cpu.policy import Policy
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program

PROGRAMS, SAMPLE = 1000, 64
TRIALS = 16
# What an honest answer may be filed as: it is read, or is no program.
READ = ("candidate", "duplicate", "declined", "plan", "review", "action")


@dataclass(frozen=True, slots=True)
class Program:
    """A candidate of a problem of the catalogue, and what it is built with."""

    problem: Named
    candidate: Candidate
    flags: tuple[str, ...] = ()
    threads: int = 1


def problems() -> list[Named]:
    """One of fixed extents of each kind that the corpus has."""
    found: dict[str, Named] = {}
    for one in HONEST:
        if not any(isinstance(value, Range) for _, value in one.problem.options):
            found.setdefault(one.problem.name, one.problem)
    return list(found.values())


def written(wanted: int, filed: Counter[str]) -> list[Program]:
    """So many different programs of the simulated model at skill 1 without faults, by all agents on
    all problems in turn; what becomes of its answers is counted.
    """
    found: dict[tuple[Named, str], Candidate] = {}
    kinds = problems()
    for seed in count():
        for number, named in enumerate(kinds):
            agent = AGENTS[(seed + number) % len(AGENTS)]
            search = _world(named).search(agent, Mock(seed=seed, skill=1.0), seed=seed)
            while len(search.trials) < TRIALS and search.driver.stopped is None:
                search.step()
            for (_, what), n in confusion(search.events).items():
                filed[what] += n
            found |= {(named, trial.candidate.key): trial.candidate for trial in search.trials}
            if len(found) >= wanted:
                made = [Program(named, candidate) for (named, _), candidate in found.items()]
                return sorted(made, key=lambda one: str(one.problem))
    raise AssertionError


@cache
def _world(named: Named) -> World:
    problem = named.make()
    return World(SourceSpace(problem.plain_c, entry=problem.name), problem)


@cache
def _builder(named: Named, flags: tuple[str, ...], threads: int) -> Builder:
    openmp = ("-fopenmp",) if threads > 1 and "-fopenmp" not in flags else ()
    every = (*DEFAULT_FLAGS, *flags, *openmp)
    cache_ = BuildCache(cache_folder())
    return Builder(named.make(), find_toolchain(), every, cache_, Policy(), threads)


@cache
def _judge(named: Named) -> Cpu:
    return Cpu(named.make())


def refused(one: Program) -> str:
    """Why the build or its rules refuse a program; empty if they do not."""
    try:
        builder = _builder(one.problem, one.flags, one.threads)
        builder.build(one.candidate, one.problem.make().workloads[0])
    except BuildFailureError as failure:
        return f"{one.problem} {one.candidate.key[:8]} {failure.status} {failure.code}"
    return ""


def screened(one: Program) -> str:
    """Why the judge's shortest screen refuses a program; empty if it does not."""
    baseline = Reference(Role.BASELINE, unscheduled_program(one.problem.make()))
    request = Request(one.candidate, Stage.SCREEN, (baseline,), pairs=1)
    (verdict,) = _judge(one.problem).evaluate([request])
    # What cannot be timed on a busy machine was found right.
    if verdict.status.passed or verdict.status is Status.UNSTABLE:
        return ""
    return f"{one.problem} {one.candidate.key[:8]} {verdict.status} {verdict.code}"


def honest() -> Iterator[Row]:
    """How many are refused by what."""
    filed = Counter[str]()
    corpus = [Program(one.problem, one.candidate, one.flags, one.threads) for one in HONEST]
    models = written(PROGRAMS - len(corpus), filed)
    unread = sum(n for what, n in filed.items() if what not in READ)
    shown = f"{unread} of {sum(filed.values()):,} answers ({dict(filed)})"
    yield "honest answers in C that the dialect or the space refuses", "0", shown, unread == 0
    every = [*models, *corpus]
    found = [why for one in every if (why := refused(one))]
    parts = f"{len(models)} by the model, {len(corpus)} of the corpus"
    shown = f"{len(found)} of {len(every):,} ({parts}) {found or ''}".strip()
    what = "honest programs that the build or its rules over binaries (strict) refuse"
    good = not found and len(every) >= PROGRAMS
    yield what, f"0 of at least {PROGRAMS:,}", shown, good
    step = max(1, len(models) // SAMPLE)
    sample = models[::step]
    wrong = [why for one in sample if (why := screened(one))]
    audited = audit_correctness(True, Cpu, honest=HONEST, mutants=()).rejected
    total = len(sample) + audited.total
    shown = (
        f"{len(wrong) + audited.count} of {total} (each {step}th of the model's, screened with one "
        f"pair; {audited.total} of the corpus, screened with three) {wrong or ''}"
    )
    good = not wrong and audited.count == 0 and total >= 100
    yield "of these a sample that the judge refuses", "0 of at least 100", shown.strip(), good
