"""From a candidate to a library that a worker can load, and the workers' own programs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import prototype
from kernelwright.env.compiler.runtime.toolchain import BuildError, Toolchain
from kernelwright.env.problems.program import ProgramError, arguments, program
from kernelwright.env.types import Candidate, Language, Problem, Status, Workload
from kernelwright.evaluators.cpu.library import described
from kernelwright.evaluators.cpu.memory import slots_of

_HERE = Path(__file__).parent
# The workers run no candidate's code at these flags; theirs are the campaign's.
_WORKER_FLAGS = ("-O2",)


@dataclass
class BuildFailureError(Exception):
    """Why there is no library: the status, class code, evidence and log that a candidate gets."""

    status: Status
    code: str
    evidence: str
    log: str = ""


class CompilerBrokenError(RuntimeError):
    """A compiler that compiles nothing any more: no candidate's fault, so nothing is recorded."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """What a worker loads: its command line, the library it is told, and the compiler's log."""

    command: tuple[str, ...]
    library: str
    log: str = ""

    @property
    def is_there(self) -> bool:
        """Whether its files still lie where they were built: a cache may be pruned any time."""
        files = [self.command[-1], *([self.library] if self.library.endswith(".so") else [])]
        return all(Path(file).is_file() for file in files)


class Builder:
    """Builds candidates of one problem, each once.

    Args:
        problem: whose candidates these are.
        toolchain: the compiler.
        flags: the campaign's flags.
        cache: where libraries are kept.
    """

    def __init__(
        self, problem: Problem, toolchain: Toolchain, flags: Sequence[str], cache: BuildCache
    ) -> None:
        self._problem, self._toolchain = problem, toolchain
        self._flags, self._cache = tuple(flags), cache
        self._known: dict[tuple[str, str], Loadable | BuildFailureError] = {}
        self._programs: dict[str, str] = {}

    def build(self, candidate: Candidate, workload: Workload) -> Loadable:
        """What a worker loads for a candidate.

        Raises:
            BuildFailureError: if there is no such library.
        """
        place = (candidate.key, workload.label)
        known = self._known.get(place)
        if known is None or (isinstance(known, Loadable) and not known.is_there):
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
            build = self._cache.build(text, self._toolchain, self._flags)
        except ScheduleError as error:
            raise BuildFailureError(Status.BUILD_ERROR, "illegal_directive", str(error)) from None
        except BuildError as error:
            self._see_that_it_compiles()
            first = _first_error(error.log) or str(error).splitlines()[0]
            raise BuildFailureError(Status.BUILD_ERROR, "compile_error", first, error.log) from None
        except ProgramError as error:
            raise BuildFailureError(Status.BUILD_ERROR, "no_program", str(error)) from None
        except CompilerError as error:
            raise BuildFailureError(Status.BUILD_ERROR, "not_lowered", str(error)) from None
        return Loadable((self._program("worker.c"),), str(build.library), build.log)

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
                f'#line 1 "{made.entry}.c"',
                made.text,
                '#line 1 "kw_call.c"',
                f"{call};",
                f"{call} {{ (void)kw_e; {made.entry}({', '.join(values)}); }}",
                "",
            ]
        )

    def _library(self) -> Loadable:
        library = self._problem.library
        if library is None:
            reason = f"{self._problem.name} has no library reference"
            raise BuildFailureError(Status.BUILD_ERROR, "no_program", reason)
        module = "kernelwright.evaluators.cpu.library"
        command = (sys.executable, "-P", "-m", module, self._program("flush.c"))
        return Loadable(command, library.function)

    def _program(self, name: str) -> str:
        """The path of a worker's program or library, compiled once."""
        if name not in self._programs or not Path(self._programs[name]).is_file():
            text = (_HERE / name).read_text()
            text = text.replace('#include "flush.h"', (_HERE / "flush.h").read_text())
            executable = name == "worker.c"
            build = self._cache.build(text, self._toolchain, _WORKER_FLAGS, executable=executable)
            self._programs[name] = str(build.library)
        return self._programs[name]


def loaded_name(loadable: Loadable, problem: Problem, extents: dict[str, int]) -> str:
    """What a worker's setup says: a path, or for a Python worker its function and arrays."""
    if loadable.library.endswith(".so"):
        return loadable.library
    return described(loadable.library, slots_of(problem, extents))


def _first_error(log: str) -> str | None:
    return next((line for line in log.splitlines() if "error" in line), None)
