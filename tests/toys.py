"""Toy judges, drivers and plans for the campaign's tests."""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems import PROBLEMS
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Evidence,
    Knob,
    Measurement,
    Proposal,
    Stage,
    Status,
    Unpaired,
    Verdict,
    knob_candidate,
)
from kernelwright.search.campaign import (
    Campaign,
)
from kernelwright.search.drivers.random import Random
from kernelwright.search.plan import Baseline, Budget, Plan
from kernelwright.search.store import MemoryStore

# The problems that a CPU computes; the others are known by a model or by recordings.
CPU_PROBLEMS = tuple(sorted(set(PROBLEMS) - {"attention_gpu", "gemm_gpu", "recorded_kernel"}))
# Those with operands in several formats, with small sizes. Their arrays have sizes that are made
# for one draw, so they have no ranges.
FORMATTED = {
    "spmv_formats": {
        "rows": 9,
        "cols": 8,
        "nnz": 20,
        "formats": ["coo", "bcsr(2,2)", "ell", "dia"],
    },
    "spmm": {"rows": 9, "cols": 8, "width": 5, "nnz": 20, "formats": "ell"},
    "sddmm": {"rows": 9, "cols": 8, "depth": 5, "nnz": 20},
    "spadd": {"rows": 9, "cols": 8, "nnz": 20},
    "sparse_mul": {"rows": 9, "cols": 8, "nnz": 20},
    "spgemm": {"rows": 6, "cols": 8, "inner": 7, "nnz": 12},
    "mttkrp": {"rows": 5, "cols": 4, "depth": 6, "rank": 3, "nnz": 20},
    "ttv": {"rows": 5, "cols": 4, "depth": 6, "nnz": 20},
    "block_scores": {"length": 9, "depth": 4, "block": 3, "per_row": 2},
    "moe_matmul": {"tokens": 6, "experts": 3, "depth": 4, "width": 5, "block": 2},
    "paged_scores": {"pages": 3, "memory": 5, "page": 4, "depth": 6},
}

SPACE = KnobSpace([Knob("a", tuple(range(1, 21))), Knob("b", (1, 2, 3))])
BASE = knob_candidate({"a": 10, "b": 2})


class ToyJudge:
    """A judge of made-up times: 100/a ns; a = 13 fails. Counts what it is asked."""

    deterministic = True
    evidence = Evidence.MODELLED

    def __init__(self):
        self.asked = []

    def floor_ns(self, workload):
        return 1.0

    def true_ns(self, candidates):
        return np.array([100 / c.knobs["a"] for c in candidates])

    def evaluate(self, requests):
        self.asked += [(r.stage, r.trial, r.candidate) for r in requests]
        return [self.judge(r) for r in requests]

    def judge(self, request):
        if request.candidate.knobs["a"] == 13:
            return Verdict(Status.CRASHED, "unlucky")
        measurements = tuple(
            Measurement(
                "w",
                against.role,
                against.candidate.key,
                Unpaired((100 / request.candidate.knobs["a"],), (10.0,)),
                "toy",
                CacheState.COLD,
                Evidence.MODELLED,
                "toy",
            )
            for against in request.against
        )
        status = Status.WIN if request.stage is Stage.CONFIRM else Status.OK
        return Verdict(status, measurements=measurements, floors_ns=(("w", 4.0),))


class Script:
    """A driver that proposes what it was given, and keeps what it is told."""

    def __init__(self, asks, reason="the script ends"):
        self.asks, self.reason = list(asks), reason
        self.told = []

    @property
    def stopped(self):
        return None if self.asks else self.reason

    def ask(self, n):
        return [Proposal(c, "script") for c in (self.asks.pop(0) if self.asks else [])]

    def tell(self, trials):
        self.told += trials


def plan(make_driver=None, judge=None, **fields):
    defaults = {
        "space": SPACE,
        "evaluator": judge or ToyJudge(),
        "make_driver": lambda journal: (
            make_driver() if make_driver else Random(SPACE, seed=0, batch=4)
        ),
        "baseline": Baseline("unscheduled", BASE),
        "budget": Budget(trials=20),
        "batch": 4,
    }
    return Plan(**defaults | fields)


def c(a, b=1):
    return knob_candidate({"a": a, "b": b})


def run(the_plan, store=None, **options):
    store = store or MemoryStore()
    stop = Campaign(the_plan, store, **options).run()
    return stop, store
