"""From a candidate to a library that a worker can load."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import prototype
from kernelwright.env.compiler.runtime.toolchain import BuildError, Toolchain
from kernelwright.env.problems.program import ProgramError, arguments, program
from kernelwright.env.types import Candidate, Language, Problem, Status, Verdict, Workload
from kernelwright.evaluators.cpu.elf import BinaryError
from kernelwright.evaluators.cpu.facts import BinaryFacts, facts_of, own_facts
from kernelwright.evaluators.cpu.policy import Policy, check, numbers, reported
from kernelwright.evaluators.cpu.text import printable

# The most that a kernel's code and tables may take.
LIBRARY_BYTES = 32 << 20
# What the C library's `atexit` and its kind want of start files. Without it a text that calls them
# would not be linked, and its refusal would say nothing of why.
DSO_HANDLE = (
    '__attribute__((__weak__, __visibility__("hidden"))) const char kw_dso_handle'
    ' __asm__("__dso_handle") = 0;'
)


@dataclass
class BuildFailureError(Exception):
    """Why there is no library: the status, class code, evidence and log that a candidate gets."""

    status: Status
    code: str
    evidence: str
    log: str = ""

    @property
    def verdict(self) -> Verdict:
        """What a candidate gets that could not be built."""
        return Verdict(self.status, self.code, evidence=self.evidence, log=self.log)


# What makes compilers say which loops they vectorized, and why not the others.
_TELLING = {
    "gcc": ("-fopt-info-vec-optimized", "-fopt-info-vec-missed"),
    "clang": ("-Rpass=loop-vectorize", "-Rpass-analysis=loop-vectorize"),
}


class CompilerBrokenError(RuntimeError):
    """A compiler that compiles nothing any more: no candidate's fault, so nothing is recorded."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """What a worker loads: a shared library with the hash of its contents, or for Python the dotted
    path of a ``function``; the compiler's log, and facts of the binary.
    """

    library: Path | None = None
    digest: str = ""
    function: str = ""
    log: str = ""
    facts: tuple[tuple[str, float], ...] = ()

    def contents(self) -> bytes | None:
        """The library as it was built; None if it is not there any more: a cache may be pruned."""
        if self.library is None:
            return None
        try:
            found = self.library.read_bytes()
        except OSError:
            return None
        return found if _digest(found) == self.digest else None


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


class Builder:
    """Builds candidates of one problem, each once.

    Args:
        problem: whose candidates these are.
        toolchain: the compiler.
        flags: the campaign's flags.
        cache: where libraries are kept.
        policy: what is refused of a library.
        threads: how many a kernel may have.
    """

    def __init__(
        self,
        problem: Problem,
        toolchain: Toolchain,
        flags: Sequence[str],
        cache: BuildCache,
        policy: Policy,
        threads: int,
    ) -> None:
        self._problem, self._toolchain = problem, toolchain
        self._flags, self._cache = tuple(flags), cache
        self._policy, self._threads = policy, threads
        self._known: dict[tuple[str, str], Loadable | BuildFailureError] = {}
        self._own: BinaryFacts | None = None

    def of(self, problem: Problem) -> Builder:
        """A builder of another problem's candidates, in the same way."""
        rest = (self._toolchain, self._flags, self._cache, self._policy, self._threads)
        return Builder(problem, *rest)

    def build(self, candidate: Candidate, workload: Workload) -> Loadable:
        """What a worker loads for a candidate.

        Raises:
            BuildFailureError: if there is no such library.
        """
        place = (candidate.key, workload.label)
        known = self._known.get(place)
        gone = isinstance(known, Loadable) and known.library and known.contents() is None
        if known is None or gone:
            try:
                known = self._known[place] = self._make(candidate, workload)
            except BuildFailureError as failure:
                known = self._known[place] = failure
        if isinstance(known, BuildFailureError):
            raise known
        return known

    def _make(self, candidate: Candidate, workload: Workload) -> Loadable:
        if candidate.language is Language.LIBRARY:
            return self._library()
        try:
            text = self.text(candidate, workload)
            build = self._cache.build(text, self._toolchain, self._flags, confined=True)
        except BuildError as error:
            self._see_that_it_compiles()
            said = printable(error.log)
            first = _first_error(said) or printable(str(error)).splitlines()[0]
            raise BuildFailureError(Status.BUILD_ERROR, "compile_error", first, said) from None
        except CompilerError as error:
            raise unwritten(error) from None
        size, log = build.library.stat().st_size, printable(build.log)
        if size > LIBRARY_BYTES:
            build.library.unlink()  # the cache keeps none of it
            what = f"the library has {size >> 20} MiB: expected at most {LIBRARY_BYTES >> 20}"
            raise BuildFailureError(Status.OVER_LIMIT, "library_size", what, log)
        facts = self._allowed(build.library, log)
        return Loadable(build.library, _digest(build.library.read_bytes()), "", log, facts)

    def _allowed(self, library: Path, log: str) -> tuple[tuple[str, float], ...]:
        """The facts of a library that breaks no rule.

        Raises:
            BuildFailureError: if it breaks one.
        """
        openmp = "-fopenmp" in self._flags
        try:
            if self._own is None:
                self._own = own_facts(self._cache, self._toolchain, self._flags)
            found = facts_of(library).beyond(self._own)
        except BinaryError as error:
            raise BuildFailureError(Status.REJECTED, "no_library", str(error), log) from None
        entry = self._problem.name
        if entry in found.undefined:
            what = f"expected a function {entry}, found none of that name"
            raise BuildFailureError(Status.BUILD_ERROR, "missing_entry", what, log)
        for violation in check(found, self._policy, self._threads, openmp=openmp):
            raise BuildFailureError(Status.REJECTED, violation.code, violation.evidence, log)
        passed = reported(found, self._policy, self._threads, openmp=openmp)
        return (*numbers(found), *((f"passed.{v.code}", 1.0) for v in passed))

    def _see_that_it_compiles(self) -> None:
        """Tell a candidate that does not compile from a compiler that compiles nothing.

        Raises:
            CompilerBrokenError: if the compiler refuses what it must accept.
        """
        with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
            try:
                library = str(Path(folder) / "empty.so")
                self._toolchain.compile("int kw_empty;\n", library, self._flags)
            except BuildError as error:
                text = f"{self._toolchain.name} no longer compiles anything: {error}"
                raise CompilerBrokenError(text) from None

    def text(self, candidate: Candidate, workload: Workload) -> str:
        """The whole translation unit: prototype, the candidate, and what the worker calls.

        Raises:
            CompilerError: if the candidate has no C form.
        """
        made = program(self._problem, candidate, workload)
        given, extents = arguments(self._problem), [name for name, _ in workload.extents]
        head = prototype(made.entry, given, tuple(extents))
        # Names that no macro of a candidate has: those of knobs are checked against them.
        values = [f"kw_p[{i}]" for i in range(len(given))]
        values += [f"kw_e[{i}]" for i in range(len(extents))]
        call = "void kw_call(void *const *kw_p, const int64_t *kw_e)"
        return "\n".join(
            [
                "#include <stdint.h>",
                f"{head};",
                DSO_HANDLE,
                f'#line 1 "{made.entry}.c"',
                made.text,
                '#line 1 "kw_call.c"',
                f"{call};",
                f"{call} {{ (void)kw_e; {made.entry}({', '.join(values)}); }}",
                "",
            ]
        )

    def listing(self, candidate: Candidate, workload: Workload) -> tuple[str, str] | None:
        """The assembly of a candidate, with source lines where the compiler gives them, and what it
        says of its vectorizing; None where it makes none.
        """
        try:
            text = self.text(candidate, workload)
            if isinstance(candidate.payload, str):
                # Lines are to be those of the candidate, not of the macros before it.
                line = f'#line 1 "{self._problem.name}.c"\n'
                text = text.replace(candidate.payload, line + candidate.payload, 1)
            with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
                target = Path(folder) / "kernel.s"
                flags = (*self._flags, *_TELLING.get(self._toolchain.name, ()), "-g1", "-S")
                log = self._toolchain.compile(text, str(target), flags, confined=True)
                return target.read_text(errors="replace"), printable(log)
        except (CompilerError, OSError):
            return None

    def _library(self) -> Loadable:
        library = self._problem.library
        if library is None:
            reason = f"{self._problem.name} has no library reference"
            raise BuildFailureError(Status.BUILD_ERROR, "no_program", reason)
        return Loadable(function=library.function)


def unwritten(error: CompilerError) -> BuildFailureError:
    """The failure of a candidate that has no C text."""
    code = "not_lowered"
    if isinstance(error, ScheduleError):
        code = "illegal_directive"
    elif isinstance(error, ProgramError):
        code = "no_program"
    return BuildFailureError(Status.BUILD_ERROR, code, str(error))


def _first_error(log: str) -> str | None:
    return next((line for line in log.splitlines() if "error" in line), None)
