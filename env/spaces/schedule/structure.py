"""What rules ask of a procedure: which tensors are written and read where, inside which loops."""

from __future__ import annotations

from kernelwright.env.compiler.ir import path, queries
from kernelwright.env.compiler.ir.nodes import (
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    loops,
    statements,
    walk,
)


def stages(procedure: Procedure) -> tuple[str, ...]:
    """The tensors that are written, each where it is written last; the results first."""
    written = [s.tensor for s in statements(procedure.body) if isinstance(s, Store)]
    return tuple(dict.fromkeys(reversed(written)))


def temporaries(procedure: Procedure) -> tuple[str, ...]:
    """The temporaries of a procedure."""
    return tuple(tensor.name for tensor in queries.temporaries(procedure.body))


def loops_around(procedure: Procedure, name: str) -> tuple[str, ...]:
    """The loops that a loop is in, outermost first."""
    return tuple(loop.var for loop in path.loops_around(procedure, name))


def update_loops(procedure: Procedure, tensor: str) -> tuple[str, ...]:
    """The loops that choose an element of a tensor and have a loop inside that adds to it again,
    outermost first; none where nothing is added up.
    """
    for loop in loops(procedure):
        chain = _chain(loop)
        store = _only_store(chain[-1].body)
        if store is None or store.tensor != tensor or store.reduce is None:
            continue
        names = {
            node.name for index in store.indices for node in walk(index) if isinstance(node, Var)
        }
        spatial = [each.var in names for each in chain]
        if all(spatial):
            continue
        last = max(place for place, is_spatial in enumerate(spatial) if not is_spatial)
        return tuple(each.var for each, keep in zip(chain[:last], spatial, strict=False) if keep)
    return ()


def _chain(loop: For) -> list[For]:
    """A loop and those directly inside, guards aside."""
    chain, node = [loop], loop.body
    while isinstance(node, For | If):
        if isinstance(node, For):
            chain.append(node)
        node = node.body if isinstance(node, For) else node.then
    return chain


def _only_store(node: Stmt) -> Store | None:
    while isinstance(node, If):
        node = node.then
    return node if isinstance(node, Store) else None


def is_reduced(procedure: Procedure, tensor: str) -> bool:
    """Whether values are combined in a tensor, or it is written from itself."""
    return any(
        s.reduce is not None
        or any(isinstance(node, Load) and node.tensor == tensor for node in walk(s.value))
        for s in statements(procedure.body)
        if isinstance(s, Store) and s.tensor == tensor
    )


def stored_in(procedure: Procedure, loop: str) -> tuple[str, ...]:
    """The tensors that are written in a loop, each once."""
    body = next(each for each in loops(procedure) if each.var == loop)
    return tuple(dict.fromkeys(s.tensor for s in statements(body) if isinstance(s, Store)))


def innermost(procedure: Procedure) -> tuple[For, ...]:
    """The loops without a loop inside, in program order."""
    return tuple(loop for loop in loops(procedure) if not _has_loop(loop.body))


def _has_loop(body: Stmt) -> bool:
    return any(isinstance(each, For) for each in statements(body))


def readers_loops(procedure: Procedure, tensor: str) -> tuple[str, ...]:
    """The loops around the statements that read a tensor without writing it, in program order."""
    return tuple(loop.var for loop in loops(procedure) if _reads(loop, tensor))


def _reads(loop: For, tensor: str) -> bool:
    inside = list(statements(loop))
    stores = [s for s in inside if isinstance(s, Store)]
    if any(s.tensor == tensor for s in stores):
        return False
    return any(
        isinstance(node, Load) and node.tensor == tensor for s in stores for node in walk(s.value)
    )
