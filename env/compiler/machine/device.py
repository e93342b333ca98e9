"""Device tables: what a model or a roofline needs to know of a GPU, read from
``devices/NAME.yaml``.

A table says where each number comes from; the constants of the analytic model that are fits and not
hardware data stand under ``fitted``, named. The key ``model`` says which model they belong to:
``lecture`` (`gpu_gemm`, the default) or ``hopper`` (`hopper_gemm`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from kernelwright.env.compiler.machine.table import load_table, table_names, table_sha256

DEVICES_DIR = Path(__file__).parent / "devices"


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU's numbers, in SI units and bytes, whatever model estimates on it."""

    name: str
    title: str
    sms: int
    clock_hz: float
    peak_flops: float
    hbm_bytes_per_s: float
    l2_bytes: int
    shared_per_sm: int
    shared_per_block: int
    shared_reserved_per_block: int
    registers_per_sm: int
    registers_per_thread: int
    warps_per_sm: int
    blocks_per_sm: int
    schedulers_per_sm: int
    shared_bytes_per_clock: int

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, str) and not 0 < value < math.inf:
                raise ValueError(f"{item.name}: expected a finite number > 0, found {value}")

    def floor_s(self, flops: float, moved_bytes: float) -> float:
        """The roofline's least time in seconds (Williams, Waterman and Patterson, CACM 2009)."""
        return max(flops / self.peak_flops, moved_bytes / self.hbm_bytes_per_s)


@dataclass(frozen=True, slots=True)
class LectureDevice(Device):
    """A device of the lecture's model, with its fitted constants."""

    tensor_efficiency: float
    l2_bytes_per_s: float
    latency_s: float
    launch_s: float
    base_registers: int


@dataclass(frozen=True, slots=True)
class HopperDevice(Device):
    """A device of the Hopper model, with its fitted constants; a *vector* is a 16-byte copy of one
    thread, *clocks* are of an SM.
    """

    # Hardware: bytes an SM may ask of L2 in a clock.
    l2_bytes_per_clock: int
    # Taken, not fitted: what a launch in a graph costs, and the share of HBM's peak that reads get.
    launch_s: float
    hbm_efficiency: float
    # Registers a thread, fitted to the compiler's own counts: of warpgroup and of warp mma.
    wgmma_base: float
    wgmma_accumulator: float
    wgmma_vector: float
    wgmma_staged_vector: float
    mma_base: float
    mma_accumulator: float
    mma_vector: float
    # Words a thread keeps in local memory: a product, less what still fits.
    spill_product: float
    spill_vector: float
    spill_accumulator: float
    spill_base: float
    # Time, fitted to two measured landscapes.
    mma_clocks: float
    copy_clocks: float
    staging_clocks: float
    warp_clocks: float
    sync_clocks: float
    latency_s: float
    request_clocks: float
    repeat_clocks: float
    neighbour_share: float
    spill_clocks: float
    tile_s: float
    accumulator_clocks: float
    overlap: float


MODELS: dict[str, Callable[..., Device]] = {"lecture": LectureDevice, "hopper": HopperDevice}


def device_names() -> tuple[str, ...]:
    """The devices with a table."""
    return table_names(DEVICES_DIR)


def device_sha256(name: str) -> str:
    """The hash of a device's table."""
    return table_sha256("device", DEVICES_DIR, name)


def load_device(name: str) -> Device:
    """The device of a name, or of a YAML file's path.

    Raises:
        OptionError: if there is no such table, or it is not YAML, lacks a number, has an unknown
            one or a value of the wrong type; it says which.
    """
    return load_table(MODELS, "device", DEVICES_DIR, name)
