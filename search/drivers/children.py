"""A fresh child of parents that somebody picks: by crossover of two, or a mutation of one."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import Pool

TRIES = 32


def fresh_child(
    pool: Pool, pick: Callable[[], int], *, crossover: float, two_knobs: float
) -> tuple[int | None, tuple[int, ...]]:
    """An unvisited child with its parents; None if `TRIES` draws gave none.

    Args:
        pool: what is unvisited, and the moves.
        pick: a parent's handle, a new draw at every call.
        crossover: share of children with two parents.
        two_knobs: share of mutations that change two knobs.
    """
    for _ in range(TRIES):
        first = pick()
        parents: tuple[int, ...] = (first,)
        if pool.uniform() < crossover and (second := pick()) != first:
            parents = (first, second)
            handle = pool.crossover(first, second)
        else:
            handle = pool.mutate(first, 2 if pool.uniform() < two_knobs else 1)
        if handle is not None and handle in pool:
            return handle, parents
    return None, ()


def proposal(pool: Pool, handle: int, proposer: str, parents: tuple[int, ...]) -> Proposal:
    """The proposal of a handle, which is taken out of the pool."""
    pool.remove(handle)
    keys = tuple(pool.candidate(parent).key for parent in parents)
    return Proposal(pool.candidate(handle), proposer, keys)
