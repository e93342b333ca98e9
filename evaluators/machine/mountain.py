"""What memory costs one thread of this machine, for the model of sparse kernels.

Unlike a machine's roofline these are not bounds but what plain loops attain, at the moment: on a
shared machine the share of a cache, and of the memory's bandwidth, that one gets changes.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.machine.cpu import CpuMachine
from kernelwright.env.compiler.machine.memory import MemoryCosts
from kernelwright.env.compiler.runtime.bounded import TimeLimitError, run_bounded
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import Toolchain
from kernelwright.evaluators.machine.measured import MEMORY, Machine
from kernelwright.evaluators.machine.probe import FLAGS, MachineError

SOURCE = Path(__file__).parent / "mountain.c"
# From half of any first cache to more than one thread's share of any last one; denser where second
# caches end.
SIZES = tuple(
    kib << 10 for kib in (16, 64, 256, 1024, 2048, 4096, 16384, 32768, 65536, 131072, 262144)
)
LIMIT_S = 120.0


def memory_costs(toolchain: Toolchain, cache: BuildCache) -> MemoryCosts:
    """Measure what lines cost here, in about a second.

    Raises:
        MachineError: if the program cannot be compiled, does not end, fails or talks nonsense.
    """
    try:
        program = cache.build(SOURCE.read_text(), toolchain, FLAGS, executable=True).library
    except CompilerError as error:
        raise MachineError(f"{SOURCE.name} cannot be compiled: {error}") from None
    words = (str(program), *map(str, SIZES))
    with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
        try:
            status, said = run_bounded(words, "", folder=Path(folder), limit_s=LIMIT_S)
        except TimeLimitError:
            raise MachineError(f"{SOURCE.stem} took longer than {LIMIT_S:g} s") from None
    if status:
        raise MachineError(f"{SOURCE.stem} ended with exit status {status} and said {said!r:.200}")
    return parse_costs(said)


def parse_costs(text: str) -> MemoryCosts:
    """What the program's lines say.

    Raises:
        MachineError: for a line that is no reading, or a reading that is missing.
    """
    found: dict[tuple[str, int], float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            what, size, word = line.split()
            key, value = (what, int(size)), float(word)
        except ValueError:
            key, value = ("", 0), math.nan
        if not 0 < value < math.inf:
            expected = "expected 'WHAT BYTES SECONDS' with a time > 0"
            raise MachineError(f"{SOURCE.stem}: line {number}: {expected}, found {line!r:.200}")
        found[key] = value
    sizes = tuple(sorted(size for what, size in found if what == "stream"))
    try:
        return MemoryCosts(
            sizes,
            tuple(found["stream", size] for size in sizes),
            tuple(found["gathered", size] for size in sizes),
            found["merge", 0],
            found["mispredict", 0],
        )
    except KeyError as error:
        what, size = error.args[0]
        raise MachineError(f"{SOURCE.stem}: expected a reading {what} {size}, found none") from None
    except ValueError as error:
        raise MachineError(f"{SOURCE.stem}: {error}") from None


def as_cpu(measured: Machine, table: CpuMachine) -> CpuMachine:
    """A CPU table with this machine's measured figures in place of its own: clock, width and
    efficiency of the pipes, bandwidths, and the sizes of caches. Latencies, ports and windows stay
    the table's.
    """
    clock = measured.clock_hz
    known = {rate.name: rate.one for rate in measured.fma_flops_per_s}
    each = known["float32"] / (2 * table.fma_pipes * clock)
    # The pipes' width is the power of two that could do so much.
    simd = 4 * 2 ** max(0, math.ceil(math.log2(each) - 0.01))
    rates = {rate.name: rate.one for rate in measured.bandwidth_bytes_per_s}
    sizes = {cache.level: cache.size_bytes for cache in measured.caches}
    return replace(
        table,
        name=measured.name,
        title=measured.name,
        cores=measured.cpus,
        clock_hz=clock,
        simd_bytes=simd,
        register_bytes=max(simd, measured.vector_bytes),
        pipe_efficiency=min(1.0, 4 * each / simd),
        l1_bytes=sizes.get("L1", table.l1_bytes),
        l2_bytes=sizes.get("L2", table.l2_bytes),
        l3_bytes=sizes.get("L3", table.l3_bytes),
        l2_bytes_per_s=rates.get("L2", table.l2_bytes_per_s),
        l3_bytes_per_s=rates.get("L3", table.l3_bytes_per_s),
        dram_bytes_per_s=rates[MEMORY],
    )
