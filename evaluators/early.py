"""A screen that ends early: samples are drawn one by one until a candidate is known to be slow."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.types import Request

# One interrupted call makes any kernel look slow, three of the first three are rare; but three of
# five are most of what a screen costs, so a short screen goes by fewer.
MOST_LEAST, SHARE = 3, 4


def least(pairs: int) -> int:
    """How many samples of a screen of so many have to be taken at least: a quarter, and no more
    than three.
    """
    return max(1, min(MOST_LEAST, pairs // SHARE))


def taken(request: Request, sample: Callable[[int], float]) -> tuple[float, ...]:
    """The times in ns of a screen: as many as it has pairs, fewer if the first `least` or more of
    them are all above the limit that ``Request.cut_ns`` has for so many.

    The least time decides, since what else a host does makes calls longer: a candidate is given up
    only if none of its calls was fast. ``sample`` gives the sample of a number.
    """
    times: list[float] = []
    fewest = least(request.pairs)
    for number in range(request.pairs):
        times.append(sample(number))
        limits = request.cut_ns[len(times) - fewest :] if len(times) >= fewest else ()
        if limits and min(times) > limits[0]:
            break
    return tuple(times)
