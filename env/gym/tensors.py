"""What a policy sees of a program's tensors, and of what loops alone do not show: where temporaries
live, copies that a schedule brought, instructions in the place of loops.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.nodes import (
    MEMORY_SCOPES,
    Allocate,
    Barrier,
    Call,
    For,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    statements,
)
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.machine.cpu import LOADED_TRIPS
from kernelwright.env.compiler.machine.nest import read_nest
from kernelwright.env.gym.features import GREATEST

ROLES = ("input", "output", "temporary")
TENSOR_FEATURES = (
    "present",
    *ROLES,
    *(f"scope_{scope}" for scope in MEMORY_SCOPES),
    "log2_bytes",
    "axes",
    "depth",  # loops around the place where a temporary lives
    "reads",
    "writes",
)
EVENTS = ("calls", "barriers", "prefetches", "streams")


def tensor_table(procedure: Procedure, rows: int) -> NDArray[np.float32]:
    """One row a tensor, arguments in declared order and then temporaries in program order, padded
    with zeros; tensors beyond ``rows`` are left away.
    """
    arrays = read_nest(procedure, LOADED_TRIPS).arrays
    depths = dict(_depths(procedure.body, 0))
    touched = Counter((each.tensor, each.is_write) for each in accesses(procedure.body))
    out = np.zeros((rows, len(TENSOR_FEATURES)), dtype=np.float32)
    for row, tensor in enumerate([*tensors_by_name(procedure).values()][:rows]):
        values = [
            1.0,
            *(float(tensor.role == role) for role in ROLES),
            *(float(tensor.scope == scope) for scope in MEMORY_SCOPES),
            math.log2(max(1, arrays[tensor.name].size_bytes)),
            len(tensor.shape),
            depths.get(tensor.name, 0),
            touched[tensor.name, False],
            touched[tensor.name, True],
        ]
        out[row] = np.clip(np.array(values, dtype=np.float32), 0.0, GREATEST)
    return out


def events(procedure: Procedure) -> NDArray[np.float32]:
    """How many statements there are of each of the `EVENTS`."""
    found = list(statements(procedure.body))
    counts = [sum(isinstance(s, kind) for s in found) for kind in (Call, Barrier, Prefetch)]
    counts.append(sum(isinstance(s, Store) and s.stream for s in found))
    return np.clip(np.array(counts, dtype=np.float32), 0.0, GREATEST)


def _depths(node: Stmt, depth: int) -> Iterator[tuple[str, int]]:
    """Every temporary with the number of loops around it."""
    if isinstance(node, Allocate):
        yield node.tensor.name, depth
    for child in below(node):
        yield from _depths(child, depth + isinstance(node, For))
