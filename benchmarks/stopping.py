"""What stopping early saves and costs, on the shipped landscapes and the analytic model.

    python benchmarks/stopping.py [--only GROUP]… [--json]

Groups: h200 (recorded, four shapes), model (analytic, four shapes); each with evolution and
cost_model, 256 trials, 20 seeds. A row says which share of the evaluations was saved, looks
included, and what was kept of the final speedup.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

from collections.abc import Iterator, Sequence

from table import Row, print_groups

from kernelwright.configs.api import check, plan_of
from kernelwright.search.laboratory.stopping import (
    NEAR,
    PLATEAU,
    RULES,
    SHARE,
    Case,
    stopping,
    together,
)

SEEDS = 20
# What a recommended rule is to save at least, and to keep of the final speedup.
SAVED, KEPT = 0.3, 0.95
# With what can be reached known, and without.
RECOMMENDED = (f"roofline: {NEAR:g} of the reach", f"roofline: {SHARE:g}, plateau: {PLATEAU}")
DRIVERS = ("evolution", "cost_model")
SHAPES = ((4096, 4096, 4096), (2048, 14336, 4096), (16, 14336, 4096), (512, 512, 16384))


def case_of(config: str, shape: tuple[int, int, int], overrides: Sequence[str] = ()) -> Case:
    """A shipped campaign on another shape."""
    m, n, k = shape
    changes = [f"problem.m={m}", f"problem.n={n}", f"problem.k={k}", *overrides]
    built, reach = plan_of(config, changes), check(config, changes)["reach"]
    return Case(
        f"{config} {m}x{n}x{k}",
        lambda seed: plan_of(config, [*changes, f"seed={seed}"]).plan,
        built.target,
        reach,
    )


def recorded() -> list[Case]:
    """The recorded landscapes."""
    return [
        case_of(f"gemm_h200_{driver}", shape, [f"target.landscape=h200_gemm_{_name(shape)}"])
        for driver in DRIVERS
        for shape in SHAPES
    ]


def modelled() -> list[Case]:
    """The analytic model, with 2% noise."""
    return [case_of(f"gemm_model_{driver}", shape) for driver in DRIVERS for shape in SHAPES]


def _name(shape: tuple[int, int, int]) -> str:
    return "x".join(map(str, shape))


def rows_of(cases: Sequence[Case]) -> Iterator[Row]:
    found = list(stopping(cases, SEEDS))
    for row in found:
        yield f"{row.case}, {row.rule}", "printed", _said(row.mean_saved, row.mean_kept), None
    for rule in RULES:
        row = together([row for row in found if row.rule == rule.name])
        is_ours = rule.name in RECOMMENDED
        target = f"at least {SAVED:.0%} saved, {KEPT:.0%} kept" if is_ours else "printed"
        met = row.mean_saved >= SAVED and row.mean_kept >= KEPT
        said = _said(row.mean_saved, row.mean_kept)
        worst = sorted(row.kept)[len(row.kept) // 20]
        stopped = f"{row.stopped} of {len(row.kept)} runs stopped by it"
        said += f", {worst:.1%} in the worst of 20 runs; {stopped}"
        yield f"{row.case} cases, {rule.name}", target, said, met if is_ours else None


def _said(saved: float, kept: float) -> str:
    return f"{saved:.0%} saved, {kept:.1%} kept"


GROUPS = {"h200": lambda: rows_of(recorded()), "model": lambda: rows_of(modelled())}


if __name__ == "__main__":
    print_groups(GROUPS, __doc__)
