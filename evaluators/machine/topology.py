"""What the system says of the CPUs that this process may use: model, caches, which of them share
one, and which are fastest.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SYSTEM_CPUS = Path("/sys/devices/system/cpu")
CPU_INFO = Path("/proc/cpuinfo")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# What /proc/cpuinfo calls the model and the instructions of a CPU, on x86 and on ARM.
_MODEL, _FACTS = ("model name", "CPU part"), ("model name", "flags", "CPU part", "Features")


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A level of data cache: its size, and the sets of usable CPUs that share one each."""

    level: str
    size_bytes: int
    sharing: tuple[frozenset[int], ...]

    @property
    def bytes_per_cpu(self) -> int:
        """What a CPU has of it if all that share it use it."""
        return self.size_bytes // max(map(len, self.sharing))


@dataclass(frozen=True, slots=True)
class Topology:
    """The usable CPUs, the fastest first, and their caches, the nearest first."""

    name: str
    facts: tuple[str, ...]
    cpus: tuple[int, ...]
    caches: tuple[CacheLevel, ...]


def usable_cpus() -> frozenset[int]:
    """The CPUs that the system lets this process run on."""
    return frozenset(os.sched_getaffinity(0))


def read_topology(
    usable: Iterable[int], *, system: Path = SYSTEM_CPUS, info: Path = CPU_INFO
) -> Topology:
    """What the system says of the usable CPUs.

    Args:
        usable: their numbers.
        system: where Linux describes CPUs.
        info: the file with their models.
    """
    cpus = sorted(set(usable), key=lambda cpu: (-_greatest_khz(system / f"cpu{cpu}"), cpu))
    try:
        lines = info.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    pairs = [tuple(map(str.strip, line.partition(":")[::2])) for line in lines if ":" in line]
    models = [value for key, value in pairs if key in _MODEL and value]
    facts = {f"{key}: {value}" for key, value in pairs if key in _FACTS}
    return Topology(
        name=models[0] if models else platform.machine(),
        facts=(platform.machine(), *sorted(facts)),
        cpus=tuple(cpus),
        caches=_caches(system, cpus),
    )


def _greatest_khz(folder: Path) -> int:
    """The greatest clock of a CPU, or where that is not told its capacity; only good to compare."""
    for name in ("cpufreq/cpuinfo_max_freq", "cpu_capacity"):
        try:
            return int((folder / name).read_text())
        except (OSError, ValueError):
            continue
    return 0


def _caches(system: Path, cpus: Iterable[int]) -> tuple[CacheLevel, ...]:
    """The levels of data cache; of different sizes at one level the greatest, with which least is
    called impossible.
    """
    usable = frozenset(cpus)
    sizes: dict[int, int] = {}
    sharing: dict[int, set[frozenset[int]]] = {}
    for cpu in usable:
        for folder in (system / f"cpu{cpu}" / "cache").glob("index*"):
            try:
                if (folder / "type").read_text().strip() == "Instruction":
                    continue
                level = int((folder / "level").read_text())
                size = parse_size((folder / "size").read_text())
                together = parse_cpus((folder / "shared_cpu_list").read_text())
            except (OSError, ValueError):
                continue
            sizes[level] = max(size, sizes.get(level, 0))
            sharing.setdefault(level, set()).add((together | {cpu}) & usable)
    return tuple(
        CacheLevel(f"L{level}", sizes[level], tuple(sorted(sharing[level], key=sorted)))
        for level in sorted(sizes)
    )


def parse_size(text: str) -> int:
    """Bytes, from a number with K, M or G behind it.

    Raises:
        ValueError: if it is anything else, or 0.
    """
    text = text.strip()
    unit = _UNITS.get(text[-1:], 1)
    size = int(text.rstrip("KMG")) * unit
    if size < 1:
        raise ValueError(f"expected a size like 48K, found {text!r}")
    return size


def parse_cpus(text: str) -> frozenset[int]:
    """CPU numbers, from a list of them and of ranges, as ``0-3,8``.

    Raises:
        ValueError: if it is anything else.
    """
    out: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return frozenset(out)
