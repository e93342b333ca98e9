"""G1, G3 and G4: what sparse storage looks like, how full results are, and when it is smaller."""

from __future__ import annotations

import numpy as np

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
SIZE = 4096


def sparse_storage() -> list[Figure]:
    """Figures G1, G3 and G4."""
    return [_example(), _densities(), _crossover()]


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
