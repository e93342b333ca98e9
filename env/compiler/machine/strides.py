"""How the lines that an access misses follow one another: along, in small steps, or scattered.

Hardware prefetchers follow some streams of neighbouring lines, and steps that stay within a page;
such lines are there in time and cost bandwidth. What jumps further is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.queries import has_loads
from kernelwright.env.compiler.machine.affine import flat_from_loads, steps_along
from kernelwright.env.compiler.machine.nest import Access, Nest

LINE_BYTES = 64
# Steps that a prefetcher follows, half a page; lines side by side that make a stream; and how many
# streams are followed at once.
STEP_BYTES, RUN_LINES, STREAMS = 2048, 4, 32


class Strides:
    """The strides of a nest's accesses, each worked out once."""

    def __init__(self, nest: Nest) -> None:
        self._nest = nest
        self._offsets: dict[int, Linear | None] = {}

    def are_scattered(self, accesses: Sequence[Access], depth: int) -> bool:
        """Whether the lines are scattered that accesses to one array touch while the loop at a
        depth (and what is inside) runs; all loops at depth 0.
        """
        return all(self._is_scattered(access, depth) for access in accesses)

    def _is_scattered(self, access: Access, depth: int) -> bool:
        if id(access) not in self._offsets:
            self._offsets[id(access)] = flat_from_loads(access.indices, access.array.shape)
        offset = self._offsets[id(access)]
        if offset is None:
            return True
        found = [term for term, _ in offset.terms if has_loads(term)]
        if found and all(steps_along(term, self._nest.ordered) for term in found):
            return False
        size, trips = access.array.itemsize, self._nest.trips
        run, jumps = size, 1.0
        for var in reversed(access.loops[max(0, depth - 1) :]):
            step = abs(offset.factor(var)) * size
            if step == 0 or trips[var] <= 1:
                continue
            if step <= max(run, LINE_BYTES):
                # Along: at once, or a stream for each of the jumps inside.
                if 1.0 < jumps <= STREAMS and step * trips[var] >= RUN_LINES * LINE_BYTES:
                    return False
                run = max(run, round(step * trips[var]))
            elif jumps == 1.0 and (step <= STEP_BYTES or run >= RUN_LINES * LINE_BYTES):
                return False
            else:
                jumps *= trips[var]
        # Coordinates that are read jump, unless a row is long enough to be a stream.
        return run < RUN_LINES * LINE_BYTES if found else jumps > 1.0
