"""Rows of the compiler's table: random legal schedules of every problem mean what the unscheduled
program means, in the interpreter and as C, and the C is clean under sanitizers.

A schedule is grown by random proposals of all directives. Kernels are compiled many at a time into
one program that reads the inputs, calls each on arrays of exactly their sizes, and writes the
outputs: once as a campaign compiles them, once under the address and the undefined-behaviour
sanitizer.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from table import Row

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.c import arguments, generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.runtime.call import C_TYPES, prototype
from kernelwright.env.compiler.runtime.toolchain import ALWAYS, DEFAULT_FLAGS
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import (
    Trace,
    apply,
    apply_trace,
    parse_trace,
    print_trace,
)
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import definition_of
from kernelwright.env.types import Arrays, Directive, Problem

WANTED = 2000
BATCH = 40
LONGEST = 8
MAX_STATEMENTS = 400
# Sizes that few factors divide, small enough for the interpreter; behind a bar what sets apart
# another program of the same problem.
SIZES: dict[str, dict[str, int]] = {
    "batched_matmul": {"batch": 2, "m": 5, "n": 18, "k": 4},
    "blur": {"h": 7, "w": 19},
    "box4": {"h": 5, "w": 17},
    "column_sum": {"rows": 9, "cols": 21},
    "conv2d_nchw": {"images": 1, "channels": 2, "filters": 3, "h": 4, "w": 9},
    "conv2d_nhwc": {"images": 1, "channels": 2, "filters": 9, "h": 3, "w": 4},
    "conv3x3": {"h": 6, "w": 17},
    "depthwise": {"channels": 2, "h": 4, "w": 17},
    "gauss_seidel": {"h": 7, "w": 11, "t": 2},
    "gelu": {"n": 35},
    "histogram": {"n": 41, "bins": 7},
    "jacobi1d": {"n": 21, "t": 3},
    "jacobi2d": {"h": 7, "w": 11, "t": 2},
    "layer_norm": {"rows": 4, "cols": 18},
    "matmul": {"m": 9, "n": 18, "k": 8},
    "matmul | extents by name": {"m": 8, "n": 12, "k": 5},
    "matmul | whole tiles": {"m": 16, "n": 32, "k": 8},
    "prefix_sum": {"n": 37},
    "pyramid": {"h": 9, "w": 13},
    "row_sum": {"rows": 9, "cols": 21},
    "softmax": {"rows": 4, "cols": 19},
    "spmv": {"rows": 9, "cols": 8, "nnz": 20},
    "transpose": {"rows": 10, "cols": 18},
    "unsharp": {"h": 6, "w": 17},
}
# What some directives need before they can follow: half of a problem's schedules begin so.
BEGINNINGS: dict[str, tuple[str, ...]] = {
    "blur": (
        "compute_at('blurx', 'y')",
        "split('y', 3)\ncompute_at('blurx', 'yi')",
        "split('y', 3)\ncompute_at('blurx', 'yi')\nstore_at('blurx', 'yo')",
        "tile('y', 'x', 3, 8)\ncompute_at('blurx', 'xo')",
    ),
    "box4": (
        "compute_at('box3', 'out_y')",
        "compute_at('box3', 'out_y')\nstore_root('box3')\nfold_storage('box3', 0)",
    ),
    "unsharp": ("compute_inline('blury')\ncompute_at('blurx', 'y')",),
    "matmul": (
        "cache_read('B', 'p')",
        "split('p', 4)\ncache_read('A', 'po')",
        "tile('i', 'j', 8, 16, 'partition')",
    ),
    "matmul | extents by name": (
        "split('i', 4)\nspecialize('m % 4 == 0')\nbound('io_special', 'm', 4)",
        "tile('i', 'j', 4, 8)\nreorder('io', 'jo', 'p', 'ii', 'ji')",
    ),
    "matmul | whole tiles": (
        "tile('i', 'j', 8, 16)\nreorder('io', 'jo', 'p', 'ii', 'ji')",
        "tile('i', 'j', 8, 16)\nreorder('io', 'jo', 'p', 'ii', 'ji')\n"
        "tensorize('p', 'fma_8x16_f32')",
    ),
    "softmax": ("compute_at('total', 'i')",),
    "pyramid": ("compute_inline('detail0')", "compute_at('coarse0', 'detail0_y')"),
}
CRASHES: list[str] = []
# Legal steps whose result has no C form (as registers at places that are no numbers): not taken.
WITHOUT_C: Counter[str] = Counter()
# Directives that say so themselves change the order of sums.
REASSOCIATING = {"rfactor", "reassociate"}
PLAIN = (*ALWAYS, *DEFAULT_FLAGS, "-fopenmp")
SANITIZED = (
    *ALWAYS,
    "-O1",
    "-march=native",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A random schedule of a problem, the procedure after it, and what that computes."""

    name: str
    trace: Trace
    procedure: Procedure
    wanted: dict[str, NDArray[Any]]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(print_trace(self.trace).splitlines())}"


def random_schedules(count: int = WANTED) -> Iterator[Row]:
    """Grow, interpret, compile, run and compare."""
    rng = np.random.default_rng(0)
    made: list[Scheduled] = []
    wrong: list[str] = []
    used: Counter[str] = Counter()
    names = sorted(SIZES)
    while len(made) < count:
        name = names[len(made) % len(names)]
        grown = grow(name, rng)
        if grown is None:
            continue
        procedure, trace = grown
        problem, arrays, start = world(name)
        try:
            got = interpret(procedure, arrays, problem.workloads[0].fixed)
        except CompilerError as error:
            wrong.append(f"{name}: {print_trace(trace)!r}: {error}")
            got = start
        loose = bool({step.op for step in trace} & REASSOCIATING)
        for tensor, values in got.items():
            same = np.array_equal(values, start[tensor], equal_nan=True)
            if not (same or (loose and within(problem, arrays, {tensor: values}))):
                wrong.append(f"{name}: {print_trace(trace)!r}: {tensor} differs when interpreted")
        used.update({step.op for step in trace})
        made.append(Scheduled(name, trace, procedure, got))
    yield (
        "the same: refusals that are no refusals but faults",
        "0",
        f"{len(CRASHES)}" + _some(CRASHES),
        not CRASHES,
    )
    missing = sorted(set(DIRECTIVES) - set(used))
    rare = ", ".join(f"{op} {used[op]}" for op in sorted(used, key=lambda op: used[op])[:6])
    yield (
        f"random legal schedules (>= {WANTED}) of all problems, interpreted: as unscheduled",
        "0 differences",
        f"{len(wrong)} of {len(made)}, {len(used)} directives (fewest: {rare})"
        + (f", never: {', '.join(missing)}" if missing else "")
        + f"; {WITHOUT_C.total()} legal steps had no C form and were not taken: {_most(WITHOUT_C)}"
        + _some(wrong),
        not wrong and not missing,
    )
    for title, flags in (("compiled", PLAIN), ("under ASan and UBSan", SANITIZED)):
        failed = list(run_all(made, flags))
        yield (
            f"the same {title}: C = interpreter, and NumPy's within the error model",
            "0 differences",
            f"{len(failed)} of {len(made)}" + _some(failed),
            not failed,
        )


def _some(texts: Sequence[str]) -> str:
    return f": {' / '.join(texts[:3])}" if texts else ""


def _most(counts: Counter[str]) -> str:
    return ", ".join(f"{op} {count}" for op, count in counts.most_common(4))


@cache
def world(name: str) -> tuple[Problem, Arrays, dict[str, NDArray[Any]]]:
    """A problem, inputs, and what its unscheduled definition makes of them."""
    problem = resolve(PROBLEMS, name.partition(" | ")[0])(**SIZES[name])
    if name.endswith("extents by name"):
        problem = replace(problem, definition=lambda workload: _open_matmul())
    arrays = problem.inputs(problem.workloads[0], np.random.default_rng(1))
    procedure = definition_of(problem, problem.workloads[0])
    return problem, arrays, interpret(procedure, arrays, problem.workloads[0].fixed)


def _open_matmul() -> Procedure:
    """A matrix product of any size."""
    a, b = te.placeholder("A", ("m", "k")), te.placeholder("B", ("k", "n"))
    p = te.reduce_axis("p", "k")
    c = te.compute(
        "C", ("m", "n"), lambda i, j: te.reduce_sum(a[i, p.value] * b[p.value, j], p), [a, b]
    )
    return replace(te.lower("matmul", [c]), extents=("m", "n", "k"))


def grow(name: str, rng: np.random.Generator) -> tuple[Procedure, Trace] | None:
    """A random schedule: directives drawn evenly over their kinds, those kept that are legal."""
    problem, _, _ = world(name)
    procedure = definition_of(problem, problem.workloads[0])
    trace: Trace = ()
    wanted = int(rng.integers(1, LONGEST + 1))
    liked = BEGINNINGS.get(name, ())
    if liked and rng.random() < 0.5:
        trace = parse_trace(liked[rng.integers(len(liked))])
        procedure = apply_trace(procedure, trace)
    for _ in range(6 * wanted):
        op = str(rng.choice(list(DIRECTIVES)))
        offered = list(proposals(procedure, op))
        if not offered:
            continue
        step: Directive = offered[rng.integers(len(offered))]
        try:
            after = apply(procedure, step)
            text = generate(after)
        except ScheduleError:
            continue
        except CodegenError:
            WITHOUT_C[step.op] += 1
            continue
        except Exception as error:  # noqa: BLE001
            # A fault of the compiler: reported with what led to it.
            shown = print_trace((*trace, step))
            CRASHES.append(f"{name}: {shown!r}: {type(error).__name__}: {error}")
            continue
        if text.count("\n") > MAX_STATEMENTS:
            continue
        procedure, trace = after, (*trace, step)
        if len(trace) >= wanted:
            break
    return (procedure, trace) if trace else None


def within(problem: Problem, arrays: Arrays, got: Arrays) -> bool:
    """Whether outputs are within the problem's error model of NumPy's reference."""
    reference = problem.reference(arrays)
    limits = {} if problem.magnitude is None else problem.magnitude(arrays)
    bound = problem.error_model.bound
    return all(
        bool(np.all(abs(values.astype(np.float64) - reference[name]) <= bound * limits[name]))
        if name in limits
        else np.array_equal(values, reference[name])
        for name, values in got.items()
    )


def run_all(made: Sequence[Scheduled], flags: Sequence[str]) -> Iterator[str]:
    """What differs or fails of all kernels, some at a time, two compilers at once."""
    by_name: dict[str, list[Scheduled]] = {}
    for each in made:
        by_name.setdefault(each.name, []).append(each)
    batches = [
        some[start : start + BATCH]
        for some in by_name.values()
        for start in range(0, len(some), BATCH)
    ]
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda batch: run_batch(batch, flags), batches):
            yield from found


def run_batch(batch: Sequence[Scheduled], flags: Sequence[str]) -> list[str]:
    """What differs or fails of kernels of one problem."""
    problem, arrays, _ = world(batch[0].name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources = [str(folder / "main.c")]
        for number, each in enumerate(batch):
            renamed = replace(each.procedure, name=f"{problem.name}_{number}")
            path = folder / f"kernel{number}.c"
            path.write_text(generate(renamed))
            sources.append(str(path))
        (folder / "main.c").write_text(_main(batch, problem))
        (folder / "in").write_bytes(
            b"".join(np.ascontiguousarray(a).tobytes() for a in _inputs(problem, arrays))
        )
        built = subprocess.run(
            ["gcc", *flags, "-w", "-o", str(folder / "run"), *sources, "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            return [f"{batch[0].name}: {built.stderr[:300]}"]
        failed = []
        for number, each in enumerate(batch):
            ran = subprocess.run(
                [str(folder / "run"), str(number), str(folder / "in"), str(folder / "out")],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if ran.returncode:
                failed.append(f"{each}: exit {ran.returncode}: {ran.stderr[:400]}")
                continue
            got = _outputs(batch[0].name, problem, (folder / "out").read_bytes())
            if not all(_alike(got[name], each.wanted[name]) for name in got):
                failed.append(f"{each}: differs from the interpreter")
            elif not within(problem, arrays, got):
                failed.append(f"{each}: beyond the error model")
        return failed


def _alike(got: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Equal, but for functions of the C library, which may differ by a few units in the last place
    and carry that on.
    """
    if got.dtype.kind != "f":
        return bool(np.array_equal(got, wanted))
    size = float(np.abs(wanted).max(initial=0.0))
    return bool(np.allclose(got, wanted, rtol=1e-5, atol=1e-6 * size, equal_nan=True))


def _inputs(problem: Problem, arrays: Arrays) -> list[NDArray[Any]]:
    return [arrays[spec.name] for spec in problem.tensors if spec.role == "input"]


def _outputs(name: str, problem: Problem, data: bytes) -> dict[str, NDArray[Any]]:
    out, place = {}, 0
    reference = world(name)[2]
    for spec in problem.tensors:
        if spec.role == "output":
            like = reference[spec.name]
            values = np.frombuffer(data, like.dtype, like.size, place)
            out[spec.name] = values.reshape(like.shape)
            place += like.nbytes
    return out


def _main(batch: Sequence[Scheduled], problem: Problem) -> str:
    """A program that calls the kernel of a number on arrays of exactly their sizes."""
    procedure = batch[0].procedure
    _, given, reference = world(batch[0].name)
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>"]
    for number, each in enumerate(batch):
        name = f"{problem.name}_{number}"
        head = prototype(name, arguments(each.procedure), procedure.extents)
        lines.append(f"{head};")
    lines += ["int main(int count, char **words)", "{", 'FILE *kw_in = fopen(words[2], "rb");']
    names = []
    for tensor in procedure.tensors:
        array = given[tensor.name] if tensor.role == "input" else reference[tensor.name]
        kind, size = C_TYPES[tensor.dtype], array.size
        # The allocator rounds sizes up to its alignment, which would hide an access behind the end.
        lines.append(
            f"{kind} *{tensor.name}; if (posix_memalign((void **)&{tensor.name}, 64, "
            f"{size} * sizeof({kind}) + !{size})) return 9;"
        )
        if tensor.role == "input":
            lines.append(
                f"if (fread({tensor.name}, sizeof({kind}), {size}, kw_in) != {size}) return 9;"
            )
        names.append(tensor.name)
    lines += ["fclose(kw_in);", "switch (atoi(words[1])) {"]
    sizes = [str(problem.workloads[0].fixed[extent]) for extent in procedure.extents]
    for number in range(len(batch)):
        given_all = ", ".join([*names, *sizes])
        lines.append(f"case {number}: {problem.name}_{number}({given_all}); break;")
    lines += ["}", 'FILE *kw_out = fopen(words[3], "wb");']
    for tensor in procedure.tensors:
        if tensor.role == "output":
            size = reference[tensor.name].size
            lines.append(f"fwrite({tensor.name}, sizeof(*{tensor.name}), {size}, kw_out);")
    lines += ["fclose(kw_out);", *(f"free({name});" for name in names), "return 0;", "}"]
    return "\n".join(lines) + "\n"


GROUPS = {"random": random_schedules}
