"""The machine as a prompt states it: what a program may use, and what no program can beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.agents.context.safe import one_line
from kernelwright.env.compiler.machine.cpu import CpuMachine
from kernelwright.env.compiler.machine.device import Device
from kernelwright.evaluators.machine.measured import Machine
from kernelwright.evaluators.target import SpeedOfLight

MOST_LINE = 300


@dataclass(frozen=True, slots=True)
class DeviceSheet:
    """What a template knows of the machine; no lines where nothing is known."""

    name: str = ""
    lines: tuple[str, ...] = ()


UNKNOWN = DeviceSheet()


def device_sheet(
    device: object, bounds: Sequence[SpeedOfLight], *, dtype: str, itemsize: int, threads: int = 1
) -> DeviceSheet:
    """The figures of a device, and the least time of each workload.

    Args:
        device: a table or a measured machine; of anything else only the name is known.
        bounds: the least times; empty where none are known.
        dtype: of the arithmetic.
        itemsize: bytes of one value of it.
        threads: how many a program may use.
    """
    if isinstance(device, Device):
        name, lines = device.title, _gpu(device)
    elif isinstance(device, CpuMachine):
        name, lines = device.title, _table(device, itemsize, threads)
    elif isinstance(device, Machine):
        name, lines = device.name, _measured(device, dtype, threads)
    else:
        name, lines = str(getattr(device, "name", "") or ""), []
    lines = [*(_bound(bound) for bound in bounds), *lines]
    return DeviceSheet(one_line(name, 100), tuple(one_line(line, MOST_LINE) for line in lines))


def _gpu(d: Device) -> list[str]:
    ridge = d.peak_flops / d.hbm_bytes_per_s
    return [
        f"{d.sms} SMs at {d.clock_hz / 1e9:.3g} GHz, {d.peak_flops / 1e12:.4g} TFLOP/s on its "
        f"Tensor Cores; HBM gives {d.hbm_bytes_per_s / 1e12:.3g} TB/s, so arithmetic is the limit "
        f"above {ridge:.3g} operations a byte",
        f"L2 cache {_bytes(d.l2_bytes)}; shared memory {_bytes(d.shared_per_sm)} an SM, at most "
        f"{_bytes(d.shared_per_block)} a block",
        f"{d.registers_per_sm} registers an SM, at most {d.registers_per_thread} a thread; at most "
        f"{d.warps_per_sm} warps and {d.blocks_per_sm} blocks an SM, {d.schedulers_per_sm} "
        "schedulers",
    ]


def _table(m: CpuMachine, itemsize: int, threads: int) -> list[str]:
    peak = m.peak_flops(itemsize) * threads
    return [
        f"{threads} of {m.cores} cores may be used, at {m.clock_hz / 1e9:.3g} GHz; together "
        f"{peak / 1e9:.4g} Gflop/s; memory gives {m.dram_bytes_per_s / 1e9:.3g} GB/s, so "
        f"arithmetic is the limit above {peak / m.dram_bytes_per_s:.3g} operations a byte",
        f"{m.vector_registers} vector registers of {m.register_bytes} bytes "
        f"({m.register_bytes // itemsize} values), executed {m.simd_bytes} bytes at a time",
        f"{m.fma_pipes} multiply-add pipes of latency {m.fma_latency:g}, so at least "
        f"{m.fma_pipes * m.fma_latency:g} independent vectors keep them busy; "
        f"{m.loads_per_clock:g} loads and {m.stores_per_clock:g} stores a cycle",
        f"caches: L1 {_bytes(m.l1_bytes)}, L2 {_bytes(m.l2_bytes)}, L3 {_bytes(m.l3_bytes)}, "
        f"lines of {m.line_bytes} bytes",
    ]


def _measured(m: Machine, dtype: str, threads: int) -> list[str]:
    peak = m.operations_per_s(dtype, threads)
    memory = m.bandwidth_bytes_per_s[-1].of(threads)
    head = f"{threads} of {m.cpus} CPUs may be used, at {m.clock_hz / 1e9:.3g} GHz"
    if peak < float("inf"):
        head += (
            f"; together {peak / 1e9:.4g} Gop/s on {dtype}; memory gives {memory / 1e9:.3g} GB/s, "
            f"so arithmetic is the limit above {peak / memory:.3g} operations a byte"
        )
    lines = [head, f"vectors of {m.vector_bytes} bytes"]
    if m.caches:
        rates = zip(m.caches, m.bandwidth_bytes_per_s, strict=False)
        told = (
            f"{cache.level} {_bytes(cache.size_bytes)} ({rate.of(threads) / 1e9:.3g} GB/s)"
            for cache, rate in rates
        )
        lines.append(f"caches: {', '.join(told)}")
    return lines


def _bound(bound: SpeedOfLight) -> str:
    limit = f", by {bound.limit}" if bound.limit else ""
    where = f" at {bound.workload}" if bound.workload else ""
    return f"no program takes less than {bound.floor_ns / 1e3:.4g} us{where}{limit}"


def _bytes(count: float) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"
