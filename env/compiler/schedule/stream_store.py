"""stream_store: writing past the caches, which changes no value."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Procedure,
    Stmt,
    Store,
    map_statements,
)
from kernelwright.env.compiler.ir.queries import (
    loads,
    stores,
)
from kernelwright.env.compiler.schedule.access import find_tensor
from kernelwright.env.compiler.schedule.edit import (
    finish,
)


def stream_store(procedure: Procedure, tensor: str) -> Procedure:
    """Write an output past the caches (non-temporal stores), which saves reading its lines first
    and leaves the caches to other data.

    Before::

        for i in 1024:
          y[i] = x[i] * 2

    After ``stream_store("y")``::

        for i in 1024:
          y[i] = x[i] * 2  # stream

    Where the store is vectorized, its vectors are at least 16 bytes long and lie at whole multiples
    of their length, it becomes a streaming store; elsewhere it stays an ordinary one.

    Raises:
        ScheduleError: if there is no such output, or the procedure reads it, by a load or by
            combining with what is there.
    """
    found = find_tensor("stream_store", procedure, tensor)
    if found.role != "output":
        raise ScheduleError("stream_store", f"expected an output, found {found.role} {tensor}")
    if any(load.tensor == tensor for load in loads(procedure.body)):
        raise ScheduleError("stream_store", f"{tensor} is read again in the procedure")
    written = [store for store in stores(procedure.body) if store.tensor == tensor]
    if any(store.reduce is not None for store in written):
        reason = f"a store combines with what {tensor} has, which reads it again"
        raise ScheduleError("stream_store", reason)

    def statement(node: Stmt) -> Stmt:
        mine = isinstance(node, Store) and node.tensor == tensor
        return replace(node, stream=True) if mine and isinstance(node, Store) else node

    body = map_statements(procedure.body, lambda e: e, statement)
    return finish("stream_store", replace(procedure, body=body))
