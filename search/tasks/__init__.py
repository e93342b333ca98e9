"""Many tasks under one budget: who gets the next batch, and what tasks learn from one another.

A *task* is an ordinary campaign (one shape, one landscape) with a weight: how often its kernel is
called. A scheduler gives out the budget batch by batch; it is a function of the tasks' standings
alone, so a campaign of tasks replays as one of a single task does.
"""

from __future__ import annotations

SCHEDULERS: dict[str, str] = {
    "gradient": "kernelwright.search.tasks.gradient:Gradient",
    "decay": "kernelwright.search.tasks.decay:Decay",
    "round_robin": "kernelwright.search.tasks.round_robin:RoundRobin",
}
