"""Device tables: what a model or a roofline needs to know of a GPU, read from
``devices/NAME.yaml``.

A table says where each number comes from; the constants of the analytic model that are fits and not
hardware data stand under ``fitted``, named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path

from kernelwright.env.compiler.machine.table import load_table, table_names, table_sha256

DEVICES_DIR = Path(__file__).parent / "devices"


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU's numbers, in SI units and bytes."""

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
    # Fitted, not hardware data.
    tensor_efficiency: float
    l2_bytes_per_s: float
    latency_s: float
    launch_s: float
    base_registers: int

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, str) and not 0 < value < math.inf:
                raise ValueError(f"{item.name}: expected a finite number > 0, found {value}")

    def floor_s(self, flops: float, moved_bytes: float) -> float:
        """The roofline's least time in seconds (Williams, Waterman and Patterson, CACM 2009)."""
        return max(flops / self.peak_flops, moved_bytes / self.hbm_bytes_per_s)


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
    return load_table(Device, "device", DEVICES_DIR, name)
