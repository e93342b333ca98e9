"""The even split: every open task gets as many batches as the others."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.search.tasks.standing import EVEN, Standing, Turn, open_tasks


class RoundRobin:
    """One batch each, again and again: what every other scheduler must beat."""

    def choose(self, standings: Sequence[Standing]) -> Turn | None:
        """The open task with the fewest batches, the first of equals."""
        tasks = open_tasks(standings)
        if not tasks:
            return None
        return Turn(min(tasks, key=lambda i: (standings[i].batches, i)), EVEN)
