"""Small spaces for drivers, and a loop that drives them."""

from __future__ import annotations

from dataclasses import replace

from contracts import judged, slope
from programs import matmul

from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Knob

SPACE = KnobSpace(
    [Knob("a", (1, 2, 4, 8, 16)), Knob("b", (1, 2, 4, 8)), Knob("c", (1, 2, 3))],
    [Constraint("rule", "a * b <= 64", "too big")],
)


def product(m, n, k):
    """Only the update of a matrix product."""
    whole = matmul(m, n, k)
    return replace(whole, body=whole.body.body[1])


SCHEDULES = ScheduleSpace(product(16, 32, 8), threads=2, lanes=(4, 8))


def sloping(candidate):
    return slope(SPACE, candidate)


def drive(driver, count, value=sloping, batch=8):
    """The trials of a driver up to a number; ``value`` gives objectives."""
    trials = []
    while len(trials) < count and (proposals := driver.ask(batch)):
        fresh = [
            judged(len(trials) + i, p.candidate, value(p.candidate))
            for i, p in enumerate(proposals)
        ]
        driver.tell(fresh)
        trials += fresh
    return trials
