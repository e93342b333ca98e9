"""What a machine can do at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from kernelwright.display.tables import print_notes, print_table

# What the figures of a machine are called, and what they are counted in.
_ROOFLINE = {
    "fma_flops_per_s": ("multiply-adds", "Gflop/s"),
    "peak_flops_per_s": ("with adds beside them", "Gflop/s"),
    "integer_adds_per_s": ("integer adds", "Gop/s"),
    "bandwidth_bytes_per_s": ("traffic", "GB/s"),
}


def print_machine(console: Console, facts: Mapping[str, Any]) -> None:
    """What a machine can do at most: its roofline, and what its CPUs are like."""
    rows = [
        (f"{words}, {name}", rate["one"] / 1e9, rate["all"] / 1e9, unit)
        for key, (words, unit) in _ROOFLINE.items()
        for name, rate in facts["roofline"][key].items()
    ]
    cpus = facts["cpus"]
    console.print(f"{facts['name']}, {cpus} CPU{'s' if cpus > 1 else ''}\n", soft_wrap=True)
    print_table(console, ("roofline", "one CPU", f"all {cpus}", "unit"), rows)
    print_notes(console, "CPU", _cpu_notes(facts))


def _cpu_notes(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        ("clock", f"{facts['clock_hz'] / 1e9:.2f} GHz", "dependent adds, one a cycle"),
        ("vectors", f"{facts['vector_bytes']} bytes", "the widest that the compiler has here"),
        ("timer", f"{facts['timer_resolution_s'] * 1e9:.0f} ns", "least step"),
        *(
            (f"{c['level']} cache", f"{c['bytes'] / 1024:g} KiB", f"{c['count']} of them")
            for c in facts["caches"]
        ),
    ]
