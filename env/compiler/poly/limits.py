"""A limit on how much isl computes for one question: integer programming can take for ever.

The limit counts isl's own operations and not seconds, so that the same question has the same answer
on every machine. isl's options and counters belong to its one context, hence the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import islpy as isl

from kernelwright.env.compiler.errors import CompilerError

LOCK = RLock()
# A few times what the schedules of a few statements take. Numbers may grow without end on the way,
# so that a step is no fixed time.
MAX_OPERATIONS = 30_000
# For whether something is legal at all: some seconds, where most answers take a few milliseconds.
MAX_ANSWER_OPERATIONS = 4_000_000


class LimitError(CompilerError):
    """A question that isl did not answer within its limit."""


@contextmanager
def limited(what: str, operations: int = MAX_OPERATIONS) -> Iterator[None]:
    """Compute with isl, within a number of its operations.

    Raises:
        LimitError: with what was asked, if isl did not come to an end.
    """
    context = isl.DEFAULT_CONTEXT
    with LOCK:
        before = context.get_max_operations()
        context.reset_operations()
        context.set_max_operations(operations)
        try:
            yield
        except isl.Error:
            if not _is_spent():
                raise
            raise LimitError(f"{what}: expected an answer in {operations} steps of isl") from None
        finally:
            context.set_max_operations(before)
            context.reset_operations()


def _is_spent() -> bool:
    """Whether isl stopped at its limit, which it then says of whatever comes next."""
    try:
        isl.Set("{ [i] : 0 <= i < 4 }").sample_point()
    except isl.Error:
        return True
    return False
