"""Device tables: what a model or a roofline needs to know of a GPU, read from
``devices/NAME.yaml``.

A table says where each number comes from; the constants of the analytic model that are fits and not
hardware data stand under ``fitted``, named.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import yaml

from kernelwright.env.options import OptionError

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
    return tuple(sorted(path.stem for path in DEVICES_DIR.glob("*.yaml")))


def _table(name: str) -> Path:
    path = Path(name) if name.endswith((".yaml", ".yml")) else DEVICES_DIR / f"{name}.yaml"
    known = device_names()
    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        near = difflib.get_close_matches(name, known, 1)
        expected = f"a device table's YAML file or one of {', '.join(known)}"
        raise OptionError("device", expected, f"{name!r:.200}", near[0] if near else None)
    return path


def device_sha256(name: str) -> str:
    """The hash of a device's table."""
    return hashlib.sha256(_table(name).read_bytes()).hexdigest()


def load_device(name: str) -> Device:
    """The device of a name, or of a YAML file's path.

    Raises:
        OptionError: if there is no such table, or it is not YAML, lacks a number, has an unknown
            one or a value of the wrong type; it says which.
    """
    path = _table(name)
    try:
        return _parse(path.stem if path.parent == DEVICES_DIR else str(path), path.read_text())
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise OptionError("device", f"a device table in {path}", str(error)) from None


@lru_cache(maxsize=64)
def _parse(name: str, text: str) -> Device:
    """The table in a text; keyed by the text, so an edited file is read again."""
    table = yaml.safe_load(text)
    if not isinstance(table, dict) or not isinstance(table.get("fitted", {}), dict):
        raise ValueError("expected a mapping of numbers with a mapping 'fitted'")
    values = {key: value for key, value in table.items() if key not in ("fitted", "sources")}
    values |= {**table.get("fitted", {}), "name": name}
    known = {item.name: item.type for item in fields(Device)}
    for key, value in values.items():
        if key not in known:
            raise ValueError(f"unknown key {key!r}; known: {', '.join(known)}")
        expected = {"int": (int,), "float": (int, float), "str": (str,)}[str(known[key])]
        if not isinstance(value, expected) or isinstance(value, bool):
            raise ValueError(f"{key}: expected {known[key]}, found {value!r}")
    missing = [key for key in known if key not in values]
    if missing:
        raise ValueError(f"missing key {missing[0]!r}")
    return Device(**values)
