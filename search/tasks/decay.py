"""A scheduler in the manner of TVM's MetaSchedule and Ansor (Zheng et al., OSDI 2020, section 6),
to be compared with.

One batch each; then to the task of greatest weight x (a x recent slope + (1 - a) x best time /
batches): the second term says that a task improves less the more batches it had, whatever its
curve shows. A task in which nothing passed is never asked again while another one can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from kernelwright.search.tasks.standing import FIRST, GAIN, Standing, Turn, newcomer, open_tasks


class Decay:
    """Weight x (recent slope + best time / batches): the published rule, without a floor."""

    def __init__(
        self,
        *,
        slope: Annotated[float, Field(ge=0, le=1, description="weight of the recent slope")] = 0.2,
        window: Annotated[int, Field(ge=1, description="batches that the slope is taken over")] = 3,
    ) -> None:
        self._slope, self._window = slope, window

    def choose(self, standings: Sequence[Standing]) -> Turn | None:
        """Who is next."""
        fresh, tasks = newcomer(standings), open_tasks(standings)
        if fresh is not None:
            return Turn(fresh, FIRST)
        if not tasks:
            return None
        gains = {i: self._gain(standings[i]) for i in tasks}
        best = min(tasks, key=lambda i: (-gains[i], standings[i].batches, i))
        return Turn(best, GAIN, gains[best])

    def _gain(self, standing: Standing) -> float:
        known = [time for time in standing.curve if time is not None]
        if not known:
            return 0.0
        steps = min(self._window, len(known) - 1)
        slope = (known[-1 - steps] - known[-1]) / steps if steps else 0.0
        mean = known[-1] / standing.batches
        return standing.weight * (self._slope * slope + (1 - self._slope) * mean)
