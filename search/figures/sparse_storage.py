"""G1, G3, G4 and H5: what sparse storage looks like, how full results are, when it is smaller, and
what a loop over it visits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Block,
    For,
    Procedure,
    Stmt,
    Store,
    Tensor,
    map_statements,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.storage import from_dense, pack
from kernelwright.search.figures.table import Figure, exact

EXAMPLE = (
    (5, 0, 0, 1, 0, 0),
    (0, 0, 0, 0, 0, 0),
    (0, 2, 0, 0, 0, 3),
    (0, 0, 0, 0, 4, 0),
)
DENSITY = 0.05
FORMAT = "csr"
SIZE = 4096


def sparse_storage() -> list[Figure]:
    """Figures G1, G3, G4 and H5."""
    return [_example(), _densities(), _crossover(), _visited()]


def _example() -> Figure:
    """The arrays of one matrix in CSR and in DCSR."""
    parts = []
    for text in ("csr", "dcsr"):
        arguments = from_dense(parse_format(text), np.array(EXAMPLE)).arguments("A")
        parts.append(", ".join(f"{name} {array.tolist()}" for name, array in arguments.items()))
    accepted = (
        "A2_pos [0, 2, 2, 4, 5], A2_crd [0, 3, 1, 5, 4], A_vals [5, 1, 2, 3, 4]; "
        "A1_pos [0, 3], A1_crd [0, 2, 3], A2_pos [0, 2, 4, 5], A2_crd [0, 3, 1, 5, 4], "
        "A_vals [5, 1, 2, 3, 4]"
    )
    return exact("G1", "arrays of a 4 × 6 matrix: CSR; DCSR", accepted, "; ".join(parts))


def _densities() -> Figure:
    """How full the sum and the product of two matrices are, of elements placed at random."""
    rng = np.random.default_rng(0)
    shape = (2000, 2000)
    csr = parse_format("csr")
    operands = [np.array(np.nonzero(rng.random(shape) < DENSITY)) for _ in range(2)]
    both = np.concatenate(operands, axis=1)
    union = pack(csr, shape, both, np.ones(both.shape[1]), duplicates="sum")
    total = shape[0] * shape[1]
    either = 100 * union.stored / total
    common = 100 * int((union.values == 2).sum()) / total
    ok = 9.5 <= either <= 10.0 and 0.20 <= common <= 0.30
    title = "stored by the sum, the product of 5% and 5%"
    return Figure("G3", title, "9.5 to 10.0%, 0.20 to 0.30%", f"{either:.2f}%, {common:.2f}%", ok)


def _crossover() -> Figure:
    """From which density on CSR in float32 and int32 is no smaller than a dense matrix: by bytes of
    values and coordinates alone, and with those of the rows.
    """
    shape = (SIZE, SIZE)
    csr = parse_format("csr")
    diagonal = np.tile(np.arange(SIZE), (2, 1))
    empty = pack(csr, shape, diagonal[:, :0], np.zeros(0, np.float32)).nbytes
    full = pack(csr, shape, diagonal, np.ones(SIZE, np.float32)).nbytes
    each = (full - empty) / SIZE
    dense = pack(parse_format("dense"), shape, diagonal, np.ones(SIZE, np.float32)).nbytes
    elements = SIZE * SIZE
    without, with_rows = dense / each / elements, (dense - empty) / each / elements
    got = f"{each:.0f} B, {100 * without:.0f}%, {100 * with_rows:.2f}%"
    title = "CSR: bytes a nonzero, as large as dense at, with row positions"
    return exact("G4", title, "8 B, 50%, 49.99%", got)


def _visited() -> Figure:
    """The iterations of a dense matrix times a sparse one, element by element."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((60, 80)) < DENSITY, 1.0, 0.0)
    stored = from_dense(parse_format(FORMAT), matrix)
    product = program("C(i,j) = A(i,j) * B(i,j)", {"B": stored.format}, structure="B")
    arguments = {"A": np.ones(matrix.shape), **stored.arguments("B")}
    sizes = {"i_size": 60, "j_size": 80, "B2_size": stored.stored}
    counted = _counted(lower(product))
    extents = {name: sizes[name] for name in counted.extents}
    got = interpret(counted, arguments, extents)["visits"]
    nonzeros = int(np.count_nonzero(matrix))
    title = "iterations of dense times CSR by elements: nonzeros + rows"
    found = f"{got[1]} + {got[0]} = {sum(got)}"
    return exact("H5", title, f"{nonzeros} + 60 = {nonzeros + 60}", found)


def _counted(procedure: Procedure) -> Procedure:
    """The procedure with the iterations of every loop counted, outer loops first."""
    loops: list[str] = []

    def seen(node: Stmt) -> Stmt:
        if not isinstance(node, For):
            return node
        loops.insert(0, node.var)
        return node

    def counting(node: Stmt) -> Stmt:
        if not isinstance(node, For):
            return node
        one = Store("visits", (whole(loops.index(node.var)),), whole(1), "add")
        return replace(node, body=Block((one, node.body)))

    map_statements(procedure.body, lambda e: e, seen)
    zeros = [Store("visits", (whole(at),), whole(0)) for at in range(len(loops))]
    body = Block((*zeros, map_statements(procedure.body, lambda e: e, counting)))
    visits = Tensor("visits", (whole(len(loops)),), "int64", "output")
    return replace(procedure, tensors=(*procedure.tensors, visits), body=body)
