"""A screen that ends early: samples are drawn one by one until the candidate is known to be slow."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.types import Request

# One interrupted call makes any kernel look slow; two in a row are rare.
LEAST = 2


def taken(request: Request, sample: Callable[[int], float]) -> tuple[float, ...]:
    """The times in ns of a screen: as many as it has pairs, fewer if the first `LEAST` or more of
    them are all above ``Request.cut_ns``.

    The least time decides, since whatever else a host does makes calls longer, so a candidate is
    given up only if none of its calls was fast. ``sample`` gives the sample of a number.
    """
    times: list[float] = []
    for number in range(request.pairs):
        times.append(sample(number))
        if request.cut_ns is not None and len(times) >= LEAST and min(times) > request.cut_ns:
            break
    return tuple(times)
