"""The naive evaluator from the outside: what it is told, where it runs, and what it says.

``naive.c`` is the evaluator and lists its weaknesses; ``jail.c`` is the room in which it runs, so
that a candidate that attacks it attacks nothing else. What is parsed here is parsed as trustingly
as published evaluators do, with one exception: no value of a candidate's is ever unpickled.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, Toolchain, find_toolchain
from kernelwright.env.problems.program import arguments, extent_macros
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Problem, TensorSpec, Workload

SEED = 42
MEMORY_MIB, PROCESSES = 2048, 64
# Beyond the time limit of each candidate: to start, and to end what hangs.
GRACE_S = 15.0
# Weights that a framework's initialiser makes harmless.
BENIGN = {"gamma": 1.0, "beta": 0.0}
_HERE = Path(__file__).parent
# What a program keeps of its output.
_TAIL_BYTES = 1 << 16
# libm must not be there before the candidate is, which may bring a better one.
_NAIVE_FLAGS = ("-O1", "-rdynamic", "-Wl,--no-as-needed,-ldl,--as-needed")
# Its table of addresses stays writable.
_REFERENCE_FLAGS = ("-Wl,-z,lazy,-z,norelro",)
_CLOCK = """
#include <time.h>
double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}
"""
# What it says of each shape's time.
_TIME = re.compile(r"^shape (?P<shape>\d+): (?P<ns>\d+) ns", re.MULTILINE)
_LINE = re.compile(
    r"^(?P<text>RESULT passed=(?P<passed>[01]) speedup=(?P<speedup>\S+))"
    r"(?: key=(?P<key>[0-9a-f]{16}))?$",
    re.MULTILINE,
)
_OUTCOME = struct.Struct("dd")


class NaiveError(RuntimeError):
    """A naive evaluator that could not be run, which is nobody's exploit."""


@dataclass(frozen=True, slots=True)
class NaiveResult:
    """What the naive evaluator believes.

    ``speedup`` is NaN where it did not pass; ``died`` says that the evaluator itself was ended or
    hung, ``survivors`` how many processes outlived it.
    """

    passed: bool
    speedup: float
    died: bool
    survivors: int
    stdout: str

    @property
    def times_ns(self) -> tuple[float, ...]:
        """The candidate's mean time in ns for each shape that was timed, as it was printed."""
        said = {int(line["shape"]): float(line["ns"]) for line in _TIME.finditer(self.stdout)}
        return tuple(said[shape] for shape in sorted(said))


@dataclass(frozen=True, slots=True)
class Setting:
    """With what a candidate is built, and what it is compared with.

    Args:
        toolchain: the compiler; the first that is there unless given.
        flags: compiler flags, the same for candidate and reference.
        threads: how many a kernel may use.
        reference: C texts, one a workload; the problem's plain C unless given.
        stored_ns: the baseline's times in ns, one a workload, if they were taken earlier; else the
            reference is timed right after the candidate.
    """

    toolchain: Toolchain | None = None
    flags: tuple[str, ...] = DEFAULT_FLAGS
    threads: int = 1
    reference: tuple[str, ...] = ()
    stored_ns: tuple[float, ...] = ()


DEFAULT_SETTING = Setting()


def judge(
    problem: Problem,
    source: str | Sequence[str],
    *,
    previous: str | None = None,
    persistent: bool = False,
    queued: int = 1,
    limit_s: int = 5,
    setting: Setting = DEFAULT_SETTING,
) -> NaiveResult:
    """Judge a candidate naively.

    Args:
        problem: its problem, with fixed extents.
        source: the candidate's C text, or one for each workload.
        previous: a candidate that is judged before it, in the same folder.
        persistent: whether that one is judged in the same process, too.
        queued: how many calls are prepared at once, each with inputs of its own.
        limit_s: seconds that a candidate may take, its build included.
        setting: compiler, flags, and what it is compared with.

    Raises:
        NaiveError: if the evaluator cannot be run.
        BuildError: if the reference cannot be built.
        ValueError: if there is neither a reference nor plain C, or an extent is a range.
    """
    count = len(problem.workloads)
    own = (source,) * count if isinstance(source, str) else tuple(source)
    texts = {"candidate": own}
    if previous is not None:
        texts = {"previous": (previous,) * count, **texts}
    words = ["+".join(texts)] if persistent else list(texts)
    key = secrets.token_hex(8)
    with _folder() as folder:
        _furnish(folder, problem, texts, queued, setting)
        command = ["./naive", str(limit_s), *words]
        more = {"NAIVE_KEY": key, "OMP_NUM_THREADS": str(setting.threads)}
        report, stdout = _jailed(command, folder, more, limit_s * len(words) + GRACE_S)
        # A result object of a run before this one is believed.
        outcome = _outcome(folder / "outcome.bin")
    died, survivors = report is None or report[0] >= 128, report[1] if report else 0
    if died:
        return NaiveResult(False, math.nan, True, survivors, stdout)
    passed, speedup = outcome or _said(stdout, key) or (report is not None and report[0] == 0, 1.0)
    return NaiveResult(passed, speedup if passed else math.nan, False, survivors, stdout)


def missing(needs: Sequence[str]) -> str | None:
    """Why what a candidate does cannot be contained on this machine, None if it can."""
    if not needs or _is_contained():
        return None
    return f"{', '.join(needs)} needs namespaces, which this user may not have"


def _furnish(
    folder: Path,
    problem: Problem,
    texts: Mapping[str, Sequence[str]],
    queued: int,
    setting: Setting,
) -> None:
    """All that the evaluator finds in its folder."""
    if problem.plain_c is None and not setting.reference:
        raise ValueError(f"{problem.name}: expected plain C, found none")
    references = setting.reference or (problem.plain_c or "",) * len(problem.workloads)
    toolchain, given = setting.toolchain or find_toolchain(), arguments(problem)
    specs = {spec.name: spec for spec in problem.tensors}
    tensors = [specs[argument.name] for argument in given]
    # As anybody compiles: with the start files, which run exit handlers when it is unloaded.
    plain = (word for word in toolchain.words(setting.flags) if word != "-nostartfiles")
    compiler = shlex.join([*toolchain.command, *plain])
    counts = (len(tensors), len(problem.workloads[0].extents), len(problem.workloads), queued)
    setup = [f"{problem.name} {' '.join(map(str, counts))}", compiler]
    for number, workload in enumerate(problem.workloads):
        stored = setting.stored_ns[number] if setting.stored_ns else 0.0
        setup += _shape(folder, number, problem, tensors, workload, stored)
        macros = extent_macros(workload)
        reference = "\n".join([*macros, "#include <stdint.h>", references[number], _CLOCK])
        flags = (*setting.flags, *_REFERENCE_FLAGS)
        # The only text that is not compiled in the jail.
        built = BuildCache(cache_folder()).build(reference, toolchain, flags, confined=True)
        shutil.copyfile(built.library, folder / f"reference-{number}.so")
        for name, each in texts.items():
            text = each[number]
            unit = "\n".join([_flags(text), *macros, "#include <stdint.h>", "#line 1", text])
            (folder / f"{name}-{number}.c").write_text(unit)
    (folder / "setup.txt").write_text("\n".join(setup) + "\n")
    (folder / "tolerance.cfg").write_text("1e-2\n")
    (folder / "builds").mkdir()
    shutil.copy(_program("naive.c"), folder / "naive")
    uid = _uid(folder)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, uid)


def _shape(
    folder: Path,
    number: int,
    problem: Problem,
    tensors: Sequence[TensorSpec],
    workload: Workload,
    stored_ns: float,
) -> list[str]:
    """The lines of one shape, and the files of its inputs of whole numbers."""
    extents = workload.fixed
    drawn = problem.inputs(workload, np.random.default_rng(SEED))
    lines = [" ".join(map(str, (*extents.values(), stored_ns)))]
    for place, spec in enumerate(tensors):
        dtype, is_input = np.dtype(spec.dtype), spec.role == "input"
        count = math.prod(shape_of(spec, extents))
        if is_input and dtype.kind != "f":
            drawn[spec.name].astype(dtype).tofile(folder / f"input-{number}-{place}.bin")
        fill = BENIGN.get(spec.name, math.nan)
        lines.append(f"{int(is_input)} {dtype.kind} {dtype.itemsize} {count} {fill}")
    return lines


def _flags(text: str) -> str:
    """The first line below the macros of extents, if it tells the compiler something."""
    own = itertools.dropwhile(lambda line: line.startswith("#define KW_"), text.splitlines())
    first = next((line for line in own if line.strip()), "").lstrip()
    return first if first.startswith("// flags:") else ""


def _said(stdout: str, key: str) -> tuple[bool, float] | None:
    """The last line that is signed; one that is not will do if there is no other."""
    lines = list(_LINE.finditer(stdout))
    signed = [line for line in lines if line["key"] == _signature(key, line["text"])]
    unsigned = [line for line in lines if line["key"] is None]
    for line in (signed or unsigned)[-1:]:
        with suppress(ValueError):
            return line["passed"] == "1", float(line["speedup"])
    return None


def _signature(key: str, text: str) -> str:
    """What ``naive_sign`` gives: the 64-bit FNV-1a hash of key and text."""
    value = 14695981039346656037
    for byte in (key + text).encode():
        value = (value ^ byte) * 1099511628211 % 2**64
    return f"{value:016x}"


def _outcome(path: Path) -> tuple[bool, float] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = file.read(_OUTCOME.size)
    if len(data) != _OUTCOME.size:
        return None
    passed, speedup = _OUTCOME.unpack(data)
    return passed != 0, speedup


# The room


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that another user can enter, removed with whatever is in it by then."""
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-naive-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _jailed(
    command: Sequence[str], folder: Path, more: Mapping[str, str], limit_s: float
) -> tuple[tuple[int, int, bool] | None, str]:
    """Run a program in a jail, with some words more in its environment; (status, survivors, whether
    it was contained), None if it hung, and the end of what it said.

    Raises:
        NaiveError: if there is no jail.
    """
    jail, (read, write) = _program("jail.c"), os.pipe()
    limits = (_uid(folder), MEMORY_MIB, PROCESSES, write)
    environment = {
        "PATH": f"{Path(find_toolchain().command[0]).parent}{os.pathsep}{os.defpath}",
        "LANG": "C",
        "HOME": "/tmp",
        **more,
    }
    with tempfile.TemporaryFile() as said, os.fdopen(read, "rb") as reports:
        try:
            process = subprocess.Popen(
                [str(jail), *map(str, limits), *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                pass_fds=(write,),
                start_new_session=True,
            )
        finally:
            os.close(write)
        hung = False
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        report = reports.read(64).split()
        said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_BYTES))
        stdout = said.read(_TAIL_BYTES).decode(errors="replace")
    if hung:
        return None, stdout
    if len(report) != 3:
        raise NaiveError(f"the jail failed: {stdout.strip() or 'it said nothing'}")
    status, survivors, contained = map(int, report)
    return (status, survivors, bool(contained)), stdout


@cache
def _is_contained() -> bool:
    with _folder() as folder:
        report, _ = _jailed(["/bin/true"], folder, {}, GRACE_S)
        return report is not None and report[2]


def _uid(folder: Path) -> int:
    """Another user's number if root asks; one of many, because processes are counted by user."""
    if os.geteuid() != 0:
        return os.geteuid()
    return 60_000 + hash(folder.name) % 5_000


def _program(name: str) -> Path:
    """The path of one of this folder's programs, compiled once."""
    flags = _NAIVE_FLAGS if name == "naive.c" else ("-O1",)
    text = (_HERE / name).read_text()
    cache = BuildCache(cache_folder())
    return cache.build(text, find_toolchain(), flags, executable=True).library
