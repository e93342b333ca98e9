"""Profile ``naive`` of target ``cpu``: campaigns judged as many published evaluators do.

Everything that a measurement needs to be believed is left out on purpose (``naive.c`` has the
list), so that what a search then believes can be set beside what it should. A screen is a mean of
calls against a time of the baseline that was taken once, when the campaign was read; a confirmation
is one more of the same, and any speedup above 1 is a win (the rule ``fast_1`` of KernelBench,
Ouyang et al. 2025). The candidate runs in a jail, and its records say whose clock it was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, BuildError, find_toolchain
from kernelwright.env.problems.program import program
from kernelwright.env.types import (
    REFERENCE_FAILED,
    CacheState,
    Candidate,
    Evidence,
    Language,
    Measurement,
    Problem,
    Request,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.evaluators.cpu.build import unwritten
from kernelwright.evaluators.cpu.policy import DEFAULT_JUDGING, Judging
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.evaluators.cpu.text import printable
from kernelwright.evaluators.naive import NAIVE_CLOCK, NAIVE_PROFILE, naive

# The most that a record says of a speedup that somebody wrote down for himself.
MOST = 1e9
# What it says when it fails, in its own words: status and class code.
_FAILURES = {
    "no library": (Status.BUILD_ERROR, "compile_error"),
    "the library cannot be loaded": (Status.BUILD_ERROR, "link_error"),
    "the library lacks the kernel": (Status.BUILD_ERROR, "missing_entry"),
    "stopped by signal": (Status.CRASHED, "signal"),
}
_LOG_CHARS = 4000


class NaiveCpu(Cpu):
    """C on this machine, believed: what stands in for `Cpu` under ``profile: naive``.

    Problems, candidates, compiler and flags are the same. ``limit_s`` is what a candidate may take
    as a whole, its build included.
    """

    languages = frozenset(Language) - {Language.LIBRARY}
    repeats = False
    judge_keys: Mapping[str, tuple[str, ...] | None] = MappingProxyType(
        {"profile": (NAIVE_PROFILE,)}
    )
    # It knows no library that runs in its process, and no roofline.
    library = None
    device = None

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        judging: Judging = DEFAULT_JUDGING,
        threads: int = 1,
        flags: tuple[str, ...] = DEFAULT_FLAGS,
        toolchain: Literal["gcc", "clang", "zig"] | None = None,
        limit_s: float = 10.0,
    ) -> None:
        super().__init__(
            problem,
            seed=seed,
            judging=judging,
            threads=threads,
            flags=flags,
            toolchain=toolchain,
            limit_s=limit_s,
        )
        self._limit, self._longest_s = math.ceil(limit_s), 0.0
        # By the baseline's key: its time for each workload.
        self._stored: dict[str, tuple[float, ...]] = {}
        if self.missing:
            return
        openmp = ("-fopenmp",) if threads > 1 and "-fopenmp" not in flags else ()
        self._setting = naive.Setting(find_toolchain(toolchain), (*flags, *openmp), threads)
        uncontained = naive.missing(("a naive judge",))
        if uncontained is not None:
            self.missing = (uncontained,)

    def prepare(self, candidate: Candidate) -> None:
        """Nothing: it builds where it judges."""

    def estimate_s(self, request: Request) -> float:
        """What a request takes, in s: as long as the longest so far."""
        del request
        return self._longest_s or float(self._limit)

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request: whatever the candidate's own process said."""
        return [self._believed(request) for request in requests]

    def _believed(self, request: Request) -> Verdict:
        if self.missing:
            return Verdict(Status.BROKEN, "missing", evidence=self.missing[0])
        try:
            texts = self._texts(request.candidate)
            found = {a.role: self._stored_ns(a.candidate) for a in request.against}
            reference = self._texts(request.against[0].candidate)
        except CompilerError as error:
            failure = unwritten(error)
            return Verdict(failure.status, failure.code, evidence=failure.evidence)
        except _NoBaselineError as error:
            return Verdict(Status.BROKEN, REFERENCE_FAILED, evidence=str(error))
        first = found[request.against[0].role]
        result = self._run(texts, replace(self._setting, reference=reference, stored_ns=first))
        speedup = result.speedup
        if not result.passed or not speedup > 0:
            return _refused(result)
        speedup = min(max(speedup, 1 / MOST), MOST)
        measurements = tuple(
            Measurement(
                workload=workload.label,
                role=against.role,
                reference_key=against.candidate.key,
                # It has one score for all shapes; the times are what that score says.
                samples=Unpaired((mine / speedup,), (other,)),
                clock=NAIVE_CLOCK,
                # What it clears is smaller than the caches.
                cache_state=CacheState.WARM,
                evidence=Evidence.MEASURED,
                machine=self.fingerprint,
            )
            for against in request.against
            for workload, mine, other in zip(
                self.problem.workloads, first, found[against.role], strict=True
            )
        )
        status = Status.OK
        if request.stage is Stage.CONFIRM:
            ahead = (Status.TIE, Status.WIN)[speedup > 1]
            status = Status.LOSS if speedup < 1 else ahead
        return Verdict(status, measurements=measurements)

    def _texts(self, candidate: Candidate) -> tuple[str, ...]:
        """The C of a candidate for each workload.

        Raises:
            CompilerError: if it has none.
        """
        return tuple(program(self.problem, candidate, w).text for w in self.problem.workloads)

    def _stored_ns(self, baseline: Candidate) -> tuple[float, ...]:
        """The times of a baseline, taken when they are first asked for and never again.

        Raises:
            CompilerError: if it has no C.
            _NoBaselineError: if it cannot be timed.
        """
        if baseline.key not in self._stored:
            texts = self._texts(baseline)
            try:
                result = self._run(texts, replace(self._setting, reference=texts))
            except BuildError as error:
                raise _NoBaselineError(f"{baseline.key}: {error}") from None
            times = result.times_ns
            if not result.passed or len(times) != len(texts) or min(times) <= 0:
                said = printable(result.stdout).strip() or "nothing"
                raise _NoBaselineError(
                    f"{baseline.key}: expected a time for each of {len(texts)} shapes within "
                    f"{self._limit} s, found {said:.200}"
                )
            self._stored[baseline.key] = times
        return self._stored[baseline.key]

    def _run(self, texts: Sequence[str], setting: naive.Setting) -> naive.NaiveResult:
        began = time.monotonic()
        result = naive.judge(self.problem, texts, limit_s=self._limit, setting=setting)
        self._longest_s = max(self._longest_s, time.monotonic() - began)
        return result


class _NoBaselineError(Exception):
    """A baseline that the naive evaluator cannot time."""


def _refused(result: naive.NaiveResult) -> Verdict:
    """What a failure looks like from its outside: its last word, if it had one."""
    log = printable(result.stdout)[-_LOG_CHARS:]
    if result.died:
        what = "the evaluator itself was ended, or hung"
        return Verdict(Status.CRASHED, "evaluator_died", evidence=what, log=log)
    words = [line for line in log.splitlines() if line.startswith("failed: ")]
    last = words[-1].removeprefix("failed: ") if words else ""
    for start, (status, code) in _FAILURES.items():
        if last.startswith(start):
            return Verdict(status, code, evidence=last, log=log)
    said = log.strip().splitlines()
    return Verdict(Status.WRONG, "wrong_value", evidence=said[0] if said else "", log=log)
