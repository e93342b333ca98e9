"""Measuring a machine: what `roofline.c` is told, several rounds of it, and what it says."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.runtime.bounded import TimeLimitError, run_bounded
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import Toolchain
from kernelwright.evaluators.machine.measured import MEMORY, Cache, Machine, Throughput
from kernelwright.evaluators.machine.topology import Topology

SOURCE = Path(__file__).parent / "roofline.c"
FLAGS = ("-O3", "-march=native")
# Another CPU each time, so that a slow or busy one decides nothing; then all of them together.
ROUNDS, ROUNDS_OF_ALL = 3, 2
# A round takes less than a second; where CPUs are rationed, as in a container, far more.
LIMIT_S = 120.0
# Every nearest cache has room for so much, and no loop is so short that it would not matter.
LEAST_BYTES, NEAREST_BYTES = 8 << 10, 16 << 10
# Of all the memory there is, what all processes together take at most; and one of them, because
# what is evicted anyway need not be larger than the caches.
MOST_OF_MEMORY, MOST_BYTES = 0.25, 256 << 20
# How many times the last cache lies in memory.
TIMES_LAST = 4


class MachineError(Exception):
    """The machine could not be measured."""


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """So many bytes, which fill a level of memory; evicted from all caches first or not."""

    level: str
    size_bytes: int
    evicted: bool

    @property
    def words(self) -> tuple[str, str, str]:
        """What the program is told."""
        return (self.level, str(self.size_bytes), str(int(self.evicted)))


def working_sets(
    sizes: Sequence[tuple[str, int]], most_bytes: int | None = None
) -> tuple[WorkingSet, ...]:
    """What traffic is measured on.

    A cache is measured on half of it, and on a set that is smaller but still several times the
    cache before it. Memory is measured on several times the last cache, and on small sets too, all
    of them evicted first: what is written to a small one stays in the caches when the kernel
    returns, and some stores then move less than large ones must.

    Args:
        sizes: level and bytes of each cache, the nearest first.
        most_bytes: no set is larger.
    """
    if not sizes:
        sizes = (("L1", NEAREST_BYTES),)
    out: list[WorkingSet] = []
    before = 0
    for level, size in sizes:
        small, half = 4 * before, size // 2
        chosen = (small, half) if 0 < small < half else (half,)
        out += [WorkingSet(level, _bounded(n, most_bytes), evicted=False) for n in chosen]
        before = size
    last = sizes[-1][1]
    # A second-level cache, if there is one: writes end there.
    small = sizes[min(1, len(sizes) - 1)][1] // 2
    for size in sorted({small, last // 2, TIMES_LAST * last}):
        out.append(WorkingSet(MEMORY, _bounded(size, most_bytes), evicted=True))
    return tuple(dict.fromkeys(out))


def _bounded(size: int, most: int | None) -> int:
    return max(LEAST_BYTES, min(size, most or size))


def words_of(topology: Topology, cpus: Sequence[int], memory_bytes: int) -> tuple[str, ...]:
    """The arguments of the program for these CPUs at once.

    Args:
        topology: the machine's.
        cpus: where to measure; several share the caches that they have in common.
        memory_bytes: how much memory there is.
    """
    alone = len(cpus) == 1
    sizes = [(c.level, c.size_bytes if alone else c.bytes_per_cpu) for c in topology.caches]
    most = min(MOST_BYTES, int(MOST_OF_MEMORY * memory_bytes / len(cpus)))
    sets = working_sets(sizes, most)
    return (",".join(map(str, cpus)), *(word for each in sets for word in each.words))


def rounds(topology: Topology) -> tuple[tuple[int, ...], ...]:
    """The CPUs of each round: single ones, the fastest first, then all."""
    cpus = topology.cpus
    single = [(cpus[i % len(cpus)],) for i in range(ROUNDS)]
    return (*single, *([cpus] * ROUNDS_OF_ALL if len(cpus) > 1 else ()))


def memory_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def measure(topology: Topology, toolchain: Toolchain, cache: BuildCache) -> Machine:
    """Measure a machine, in a few seconds.

    The program runs in processes of its own, pinned, with a limit on their time and next to nothing
    of this process's environment. What other processes do meanwhile makes figures too low, which
    would call honest kernels impossible: so there are rounds, and the greatest counts.

    Raises:
        MachineError: if the program cannot be compiled, does not end, fails or talks nonsense.
    """
    try:
        program = cache.build(SOURCE.read_text(), toolchain, FLAGS, executable=True).library
    except CompilerError as error:
        raise MachineError(f"{SOURCE.name} cannot be compiled: {error}") from None
    memory = memory_bytes()
    ones, alls = list[Readings](), list[Readings]()
    for cpus in rounds(topology):
        found = _run(program, words_of(topology, cpus, memory))
        (ones if len(cpus) == 1 else alls).append(found)
    return assembled(topology, ones, alls)


Readings = Mapping[tuple[str, str], float]
"""What the program said: by what and which, the greatest value (of the timer, the least)."""


def _run(program: Path, words: Sequence[str]) -> Readings:
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        try:
            status, said = run_bounded(
                (str(program), *words), "", folder=Path(folder), limit_s=LIMIT_S
            )
        except TimeLimitError:
            raise MachineError(f"{SOURCE.stem} took longer than {LIMIT_S:g} s") from None
    if status:
        last = said.splitlines()[-1] if said else "nothing"
        raise MachineError(f"{SOURCE.stem} ended with exit status {status} and said {last!r}")
    return parse(said)


def parse(text: str) -> Readings:
    """What the program's lines say.

    Raises:
        MachineError: for a line that is no reading, or a value that no rate can have.
    """
    out: dict[tuple[str, str], float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            what, which, word = line.split()
            value = float(word)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            expected = "expected 'WHAT WHICH VALUE' with a value > 0"
            raise MachineError(f"{SOURCE.stem}: line {number}: {expected}, found {line!r:.200}")
        known = out.get((what, which), value)
        out[what, which] = min(known, value) if what == "timer" else max(known, value)
    return out


def assembled(topology: Topology, ones: Sequence[Readings], alls: Sequence[Readings]) -> Machine:
    """The machine of some rounds on single CPUs, and some on all of them.

    Raises:
        MachineError: if they lack a figure.
    """

    def best(readings: Sequence[Readings], what: str, which: str) -> float:
        found = [reading[what, which] for reading in readings if (what, which) in reading]
        if not found:
            raise MachineError(f"{SOURCE.stem}: expected a reading {what} {which}, found none")
        return min(found) if what == "timer" else max(found)

    def rates(what: str) -> tuple[Throughput, ...]:
        names = dict.fromkeys(which for reading in ones for kind, which in reading if kind == what)
        together = alls or ones  # one CPU is all of them
        return tuple(Throughput(n, best(ones, what, n), best(together, what, n)) for n in names)

    try:
        return Machine(
            name=topology.name,
            cpus=len(topology.cpus),
            vector_bytes=int(best(ones, "vector", "bytes")),
            clock_hz=best(ones, "clock", "hz"),
            timer_resolution_s=best(ones, "timer", "s"),
            caches=tuple(Cache(c.level, c.size_bytes, len(c.sharing)) for c in topology.caches),
            fma_flops_per_s=rates("fma"),
            peak_flops_per_s=rates("peak"),
            integer_adds_per_s=rates("add"),
            bandwidth_bytes_per_s=rates("traffic"),
        )
    except ValueError as error:
        raise MachineError(f"{SOURCE.stem}: {error}") from None
