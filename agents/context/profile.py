"""What is known of the parent's run, as a prompt states it: its share of the roofline, the facts
that the judge or a model of the machine found, and the last words of its log.

A driver is told one figure of performance, the objective, so times are not shown: parts of a time
are shown as shares of the whole.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.context.safe import clean, one_line
from kernelwright.agents.dialects.fences import fenced
from kernelwright.env.types import Verdict
from kernelwright.search.answers import candidate_times_ns

MOST_FACTS = 24
MOST_LOG = 1500
# What a judge records of itself, its host and its tuner, and nothing of the program.
_OTHERS = ("host.", "isolation.", "passed.", "elf.", "harness.", "judge.")
_TIME, _STEP = "time_s", "step_s"
# Parts of one step along K; the others are parts of the time.
_OF_A_STEP = frozenset(
    ("mma_s", "tensor_s", "shared_s", "issue_s", "l2_s", "hbm_step_s", "spill_s", "latency_s")
)

LEGEND = {
    "core_s": "the time with all data in the first cache",
    "flop_s": "arithmetic alone",
    "access_s": "loads and stores alone",
    "issue_s": "the front end alone",
    "chain_s": "the longest chains of dependent operations alone",
    "overhead_s": "loop overhead",
    "l1_bytes": "bytes that the core asks for",
    "l2_bytes": "bytes that miss the first cache",
    "l3_bytes": "bytes that miss the second cache",
    "dram_bytes": "bytes that come from and go to memory",
    "vector_efficiency": "used share of the vector lanes",
    "registers": "registers a thread",
    "spilled_words": "words a thread spills",
    "shared_bytes": "shared memory a block",
    "occupancy": "blocks that fit an SM",
    "resident": "blocks that an SM holds",
    "waves": "rounds of blocks over the SMs",
    "rounds": "rounds of blocks over the SMs",
    "k_steps": "steps along K",
    "padding": "computed elements over needed ones",
    "hbm_bytes": "bytes from and to HBM",
    "mma_s": "Tensor Cores",
    "tensor_s": "Tensor Cores",
    "shared_s": "shared memory",
    "l2_s": "L2 cache",
    "hbm_step_s": "HBM",
    "hbm_s": "HBM alone",
    "latency_s": "waiting for copies",
    "spill_s": "spilled registers",
    "reduction_s": "adding split parts",
    "spills": "vector registers stored to or loaded from the stack",
    "vector_bits": "widest vector instructions",
    "vector_share": "share of floating-point instructions that are on vectors",
    "fma": "multiply-add instructions",
    "calls": "calls that are left",
}
"""What the names of facts mean, where it is not plain."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a model of the machine or a look at the binary says of a program, beyond its verdict."""

    source: str
    facts: tuple[tuple[str, float], ...] = ()
    log: str = ""

    def plain(self) -> dict[str, Any]:
        """It as JSON has it."""
        return {"source": self.source, "facts": [list(f) for f in self.facts], "log": self.log}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Known | None:
        """The one that an event holds, None if nothing was found."""
        plain = data["found"]
        if not plain:
            return None
        facts = tuple((str(name), float(value)) for name, value in plain["facts"])
        return cls(str(plain["source"]), facts, str(plain["log"]))


@dataclass(frozen=True, slots=True)
class ProfileSheet:
    """What a template knows of the parent's run."""

    lines: tuple[str, ...] = ()
    log: str = ""


def profile_sheet(verdict: Verdict | None, *known: Known | None) -> ProfileSheet:
    """The profile of a program by its screen's verdict and what else is known; empty without."""
    lines: list[str] = []
    logs: list[str] = []
    if verdict is not None:
        lines += _shares(verdict)
        lines += _facts(verdict.facts)
        logs.append(verdict.log)
    for each in known:
        if each is None:
            continue
        by = f" (by {each.source})" if each.source else ""
        told = {line.partition(":")[0] for line in lines}
        lines += [
            f"{line}{by}" for line in _facts(each.facts) if line.partition(":")[0] not in told
        ]
        if each.log not in logs:
            logs.append(each.log)
    text = clean("\n".join(filter(None, (log.strip() for log in logs))), MOST_LOG)
    return ProfileSheet(tuple(lines), fenced(text, "text") if text else "")


def _shares(verdict: Verdict) -> list[str]:
    """Which share of the roofline each workload reaches, and all of them together."""
    floors = dict(verdict.floors_ns)
    found = {
        label: min(1.0, floors[label] / time)
        for label, time in candidate_times_ns(verdict).items()
        if floors.get(label)
    }
    out = [
        f"roofline: {share:.3g} of what the machine allows{f' at {name}' if name else ''}"
        for name, share in found.items()
    ]
    if len(found) > 1:
        out.append(f"roofline over all workloads: {statistics.geometric_mean(found.values()):.3g}")
    return out


def is_time(name: str) -> bool:
    """Whether a fact is a time by its name."""
    return name.endswith(("_s", "_ns", "_us", "_ms"))


def _facts(facts: Iterable[tuple[str, float]]) -> list[str]:
    """Facts of the program in words. A part of a time is its share of the whole."""
    given = dict(facts)
    is_stepped, out = bool(given.get(_STEP)), list[str]()
    for name, value in given.items():
        if name in (_TIME, _STEP) or name.startswith(_OTHERS) or not math.isfinite(value):
            continue
        if is_time(name):
            whole, of = (
                (_STEP, "a step") if is_stepped and name in _OF_A_STEP else (_TIME, "the time")
            )
            if not given.get(whole) or name not in LEGEND:
                continue  # what it took to compile, or a time that is a figure of performance
            shown = f"{100 * value / given[whole]:.3g}% of {of}"
        else:
            shown = f"{value:.6g}"
        meaning = f", {LEGEND[name]}" if name in LEGEND else ""
        out.append(one_line(f"{name}: {shown}{meaning}", 200))
    return out[:MOST_FACTS]
