"""A screen that ends early: samples are drawn one by one until a candidate is known to be slow."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.types import Request

# One interrupted call makes any kernel look slow; three of the first three are rare.
LEAST = 3


def taken(request: Request, sample: Callable[[int], float]) -> tuple[float, ...]:
    """The times in ns of a screen: as many as it has pairs, fewer if the first `LEAST` or more of
    them are all above the limit that ``Request.cut_ns`` has for so many.

    The least time decides, since what else a host does makes calls longer: a candidate is given up
    only if none of its calls was fast. ``sample`` gives the sample of a number.
    """
    times: list[float] = []
    for number in range(request.pairs):
        times.append(sample(number))
        limits = request.cut_ns[len(times) - LEAST :] if len(times) >= LEAST else ()
        if limits and min(times) > limits[0]:
            break
    return tuple(times)
