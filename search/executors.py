"""Executors: map a function over items, results in the order of the items, whoever finishes
first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Runs work; the number of workers never shows in the results."""

    workers: int

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """``[function(item) for item in items]``; the first failing item's exception is raised."""
        ...


class Serial:
    """One after the other, in this thread."""

    workers = 1

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Apply ``function`` in order."""
        return [function(item) for item in items]


class Threads:
    """A pool of threads: for work that waits for processes or runs in NumPy."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError(f"workers: expected >= 1, found {workers}")
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="kernelwright")

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Apply ``function`` in the pool; results keep the order of ``items``."""
        return list(self._pool.map(function, items))


def make_executor(workers: int) -> Executor:
    """The executor for a number of workers."""
    return Serial() if workers == 1 else Threads(workers)
