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
# Those with operands in several formats, whose sizes are made for one draw: they have no ranges.
FORMATTED = tuple(name for name in CPU_PROBLEMS if ".problems.sparse." in PROBLEMS[name])

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
