"""Rows of the sparse table: the format that a search finds for a sparse matrix times a vector,
against CSR, on four kinds of matrices.

A campaign of at most 24 trials searches formats and schedules on this machine (judge: cpu). What
it puts first, up to four candidates, then runs in the same rounds as CSR with each of its five
schedules (plain loop, sums in a register, in 4, 8 or 16 lanes), whether the campaign tried them or
not; the better of either counts. Calls follow one another as in an iterative solver, so what fits
a cache stays there; in the judge's calls it does not. Time to pack is not counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sparse_kernels import compiled
from table import Row

from kernelwright.configs import api
from kernelwright.env.compiler.schedule.trace import parse_trace, print_trace
from kernelwright.env.problems.sparse.spmv import spmv_formats
from kernelwright.env.types import Directive
from kernelwright.search.store import DATABASE, SqliteStore

PROGRAM = "kernelwright.env.spaces.schedule.formats:spmv"
KINDS: dict[str, dict[str, Any]] = {
    "power_law": {"rows": 4096, "cols": 4096, "nnz": 65536, "formats": ["dcsr", "coo"]},
    # 15 diagonals without a gap.
    "full_band": {
        "rows": 4096,
        "cols": 4096,
        "nnz": 61384,
        "formats": ["dcsr", "bcsr(4,4)", "dia"],
    },
    "block": {"rows": 4096, "cols": 4096, "nnz": 131072, "formats": ["bcsr(4,4)", "bcsr(8,8)"]},
    "empty_rows": {"rows": 131072, "cols": 131072, "nnz": 65536, "formats": ["dcsr", "coo"]},
}
TRIALS, FIRST, TARGET = 24, 4, 1.2
REGISTER = """
cache_write("y", "i", "register")
"""
LANES = """
cache_write("y", "i", "register")
split("j", {lanes}, "", "", "partition")
rfactor("ji", "P", True)
set_scope("P", "register")
vectorize("ji")
vectorize("ji_start")
unroll("ji_final")
"""
CSR = ("", REGISTER, *(LANES.format(lanes=lanes) for lanes in (4, 8, 16)))


def rows(ratios: Callable[[dict[str, Callable[[], Any]], str], dict[str, float]]) -> Iterator[Row]:
    """A row for each kind of matrix, and one for how many are won."""
    won = 0
    for matrix, options in KINDS.items():
        given = {"name": "spmv_formats", "matrix": matrix, "dtype": "float64", **options}
        problem = spmv_formats(**{k: v for k, v in given.items() if k != "name"})
        workload = problem.workloads[0]
        arrays = problem.inputs(workload, np.random.default_rng(5))
        expected = problem.reference(arrays)["y"]
        arms: dict[str, Callable[[], Any]] = {}
        for text in (*CSR, *searched(given)):
            call = compiled(problem.definition(workload), text).call(**arrays)
            np.testing.assert_allclose(call()["y"], expected, rtol=1e-9, atol=1e-9)
            arms[text] = call.run
        slower = {"": 1.0, **ratios(arms, "")}
        best = min(slower, key=lambda text: slower[text])
        gain = min(slower[text] for text in CSR) / slower[best]
        won += gain >= TARGET
        chosen = next((d.args[0] for d in parse_trace(best) if d.op == "storage"), "csr")
        yield f"SpMV, {matrix}: {chosen} found", "-", f"{gain:.2f}x the best CSR", None
    yield "best format against CSR", f">= {TARGET}x on 3 of 4", f"on {won} of 4", won >= 3


def searched(problem: dict[str, Any]) -> list[str]:
    """The schedules that a campaign puts first, as text."""
    campaign = {
        "name": problem["matrix"],
        "problem": problem,
        "space": {"kind": "schedule", "program": PROGRAM},
        "target": {"name": "cpu"},
        "driver": {"name": "evolution", "population": 8},
        # What is multiplied by again and again is in the cache, as far as it fits.
        "judge": {"state": "warm", "confirm": {"finalists": 1, "process_pairs": 3}},
        "budget": {"trials": TRIALS},
        "seed": 1,
    }
    with tempfile.TemporaryDirectory() as folder:
        api.run(campaign, Path(folder) / "run")
        with SqliteStore(Path(folder) / "run" / DATABASE, readonly=True) as store:
            trials = [t for t in store.trials() if t.objective is not None]
    trials.sort(key=lambda trial: -(trial.objective or 0.0))
    out = []
    for trial in trials[:FIRST]:
        payload = trial.candidate.payload
        assert isinstance(payload, tuple)
        directives = [d for d in payload if isinstance(d, Directive) and not d.is_decision]
        out.append(print_trace(directives))
    return out
