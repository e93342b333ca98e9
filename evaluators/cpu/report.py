"""What the judge finds of itself on this machine: its floors, its noise, and which parts of the
isolation are in force.
"""

from __future__ import annotations

from kernelwright.evaluators.cpu.floor import Floor, measured_floor
from kernelwright.evaluators.cpu.isolation import PARTS, is_root, required
from kernelwright.evaluators.cpu.likeness import probe_problem
from kernelwright.evaluators.cpu.placement import at_work, placement
from kernelwright.evaluators.cpu.target import Cpu

Rows = list[tuple[str, str, str]]


def sections() -> dict[str, Rows]:
    """Rows (name, value, note) under ``judge`` and ``isolation``.

    Raises:
        BuildError: if there is no compiler.
        WorkerError: if workers do not work here.
    """
    where = placement(1)
    with at_work(where):
        floor = measured_floor(where, 1)
    clock = "sleeps during calls" if floor.blocking else "keeps a core busy"
    judge = [
        ("harness floor", f"{floor.call_ns / 1e3:.2f} us", f"bell to done; the judge {clock}"),
        ("  99th percentile", f"{floor.call_p99_ns / 1e3:.2f} us", ""),
        ("wake to bell", f"{floor.gap_ns / 1e3:.1f} us", "when inputs can be seen already"),
        ("worker start", f"{floor.start_ns / 1e6:.1f} ms", "process, isolation, loading"),
        ("cores", f"{where.judge} | {where.workers[0]}", "judge | workers"),
        ("noise floor", *_noise()),
    ]
    return {"judge": judge, "isolation": _isolation(floor)}


def _noise() -> tuple[str, str]:
    """How far identical kernels seem apart."""
    found = Cpu(probe_problem()).likeness()
    return f"{100 * found.effect:.2f} %", "identical kernels in fresh processes"


def _isolation(floor: Floor) -> Rows:
    needed, rows = required(), list[tuple[str, str, str]]()
    for part in PARTS:
        word = "in force" if part.bit & floor.parts else "missing"
        kind = "required" if part in needed else "optional"
        if part.required and part not in needed:
            word, kind = "not needed", "an ordinary user's judge"
        rows.append((part.name.replace("_", " "), word, f"{kind}: {part.about}"))
    rows.append(("user", "root" if is_root() else "ordinary", "of the judge"))
    return rows
