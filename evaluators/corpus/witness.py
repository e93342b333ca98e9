"""What a kernel computes when no judge is around: it is compiled with a small program around it and
run on given inputs, with sanitizers on demand.

That an honest kernel of the corpus is right, and a mutant wrong, stands on this and on the
problem's error model alone. It is for the corpus's own kernels: nothing holds a hostile one back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.runtime.call import prototype
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, BuildError, Toolchain
from kernelwright.env.problems.program import arguments, extent_macros
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Problem, Workload
from kernelwright.evaluators.corpus.draws import Draw
from kernelwright.evaluators.cpu.check import Answers

SANITIZERS = ("-O1", "-g", "-march=native", "-fsanitize=address,undefined")
# An error of a sanitizer ends the program; what a kernel forgets to free is no error of its result.
_SANITIZER_SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=99",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99",
}
_LIMIT_S = 60.0
_HERE = Path(__file__).parent


class WitnessError(RuntimeError):
    """A witness that saw nothing: the kernel does not compile here."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a kernel: its worst error in units of the error model (None if it did not
    come back), on which draw, and what else was wrong.
    """

    error: float | None
    draw: str
    fault: str
    bound: float

    @property
    def is_right(self) -> bool:
        """Whether every call came back, kept to its memory and was within the bound."""
        return not self.fault and self.error is not None and self.error <= self.bound


def observe(
    source: str,
    problem: Problem,
    workload: Workload,
    draws: Sequence[Draw],
    toolchain: Toolchain,
    *,
    flags: Sequence[str] = DEFAULT_FLAGS,
    threads: int = 1,
) -> Observation:
    """What a kernel does on draws of one workload of fixed extents, call after call in one process.

    Args:
        source: its C text.
        problem: what it should compute.
        workload: the extents.
        draws: the inputs, one call each.
        toolchain: the compiler.
        flags: compiler flags; with `SANITIZERS` an access beside an array is a fault.
        threads: how many threads OpenMP starts; it is linked where there are several.

    Raises:
        WitnessError: if it does not compile.
    """
    openmp = ("-fopenmp",) if threads > 1 and "-fopenmp" not in flags else ()
    text = _program(source, problem, workload)
    with tempfile.TemporaryDirectory(prefix="kernelwright-witness-") as name:
        folder = Path(name)
        try:
            program = str(folder / "program")
            toolchain.compile(text, program, (*flags, *openmp), executable=True)
        except BuildError as error:
            raise WitnessError(f"{problem.name}: {error}") from error
        with (folder / "inputs").open("wb") as file:
            for draw in draws:
                for spec in problem.tensors:
                    if spec.role == "input":
                        file.write(np.ascontiguousarray(draw.arrays[spec.name]).tobytes())
        fault = _run(folder, len(draws), threads)
        return _compared(problem, workload, draws, folder / "outputs", fault)


def _program(source: str, problem: Problem, workload: Workload) -> str:
    extents = workload.fixed
    given = arguments(problem)
    specs = {spec.name: spec for spec in problem.tensors}
    sizes = [
        int(np.prod(shape_of(specs[a.name], extents), dtype=np.int64)) * np.dtype(a.dtype).itemsize
        for a in given
    ]
    values = [f"kw_arrays[{i}]" for i in range(len(given))] + [str(e) for e in extents.values()]
    return "\n".join(
        [
            "#include <stdint.h>",
            "#include <stdio.h>",
            "#include <stdlib.h>",
            "#include <string.h>",
            f"{prototype(problem.name, given, tuple(extents))};",
            *extent_macros(workload),
            f'#line 1 "{problem.name}.c"',
            source,
            '#line 1 "witness.c"',
            f"enum {{ KW_ARRAYS = {len(given)}, KW_INPUTS = {sum(a.is_input for a in given)} }};",
            f"static const size_t kw_bytes[] = {{{', '.join(map(str, sizes))}}};",
            "static void kw_call(void **kw_arrays)",
            f"{{ {problem.name}({', '.join(values)}); }}",
            (_HERE / "witness.c").read_text(),
        ]
    )


def _run(folder: Path, calls: int, threads: int) -> str:
    """Run the program; what was wrong with how it ended."""
    environment = {"OMP_NUM_THREADS": str(threads), "LANG": "C", **_SANITIZER_SETTINGS}
    process = subprocess.Popen(
        ["./program", "inputs", "outputs", str(calls)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        process_group=0,
        text=True,
        errors="replace",
    )
    try:
        _, said = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"took longer than {_LIMIT_S:g} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode == 0:
        return ""
    notable = [line for line in said.splitlines() if "error" in line.lower()]
    return notable[0][:200] if notable else f"ended with {process.returncode}"


def _compared(
    problem: Problem, workload: Workload, draws: Sequence[Draw], file: Path, fault: str
) -> Observation:
    extents = workload.fixed
    outputs = [spec for spec in problem.tensors if spec.role == "output"]
    bound = problem.error_model.bound
    found, at = file.read_bytes() if file.is_file() else b"", 0
    worst, where = None, ""
    for draw in draws:
        got: dict[str, NDArray[np.generic]] = {}
        for spec in outputs:
            shape = shape_of(spec, extents)
            count = int(np.prod(shape, dtype=np.int64))
            size = count * np.dtype(spec.dtype).itemsize
            if at + size >= len(found):
                return Observation(worst, where, fault or "stopped early", bound)
            got[spec.name] = np.frombuffer(found, spec.dtype, count, at).reshape(shape)
            at += size
        if found[at]:
            fault = fault or f"changed an input (draw {draw.name})"
        at += 1
        shapes = {name: array.shape for name, array in got.items()}
        answers = Answers(problem, draw.arrays, shapes, exact=draw.is_exact, workload=workload)
        error = answers.compare(got)
        # An output that holds a NaN has an error that is none.
        error = float("inf") if np.isnan(error) else error
        if worst is None or error > worst:
            worst, where = error, draw.name
    return Observation(worst, where, fault, bound)
