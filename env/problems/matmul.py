"""Matrix multiplication, C = A·B, row-major.

The error bound is that of an inner product of k terms in any order (Higham and Mary 2019, theorem
3.1): at most min(k, 4 √k) u |A||B|, elementwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.problems.tiles import register_tile
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    Directive,
    ErrorModel,
    Knob,
    Library,
    Problem,
    Projection,
    Scalar,
    TensorSpec,
    Workload,
)

LANES = {"float32": (4, 8, 16), "float64": (2, 4, 8)}


def matmul(
    *,
    m: Extent = 512,
    n: Extent = 512,
    k: Extent = 512,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """C[m, n] = A[m, k] · B[k, n]."""
    tensors = (
        TensorSpec("A", ("m", "k"), dtype, "input"),
        TensorSpec("B", ("k", "n"), dtype, "input"),
        TensorSpec("C", ("m", "n"), dtype, "output"),
    )
    lanes = LANES[dtype]

    def body(extents: Mapping[str, int]) -> Stmt:
        em, en, ek = extents["m"], extents["n"], extents["k"]
        a, b = te.placeholder("A", (em, ek), dtype), te.placeholder("B", (ek, en), dtype)
        p = te.reduce_axis("p", ek)
        c = te.compute(
            "C", (em, en), lambda i, j: te.reduce_sum(a[i, p.value] * b[p.value, j], p), [a, b]
        )
        return te.lower("matmul", [c]).body

    return Problem(
        name="matmul",
        version=1,
        tensors=tensors,
        workloads=(workload(m=m, n=n, k=k),),
        error_model=ErrorModel(unit(dtype), f"{SUMMATION} and 3.1, times |A||B|"),
        reference=_reference,
        inputs=normal_inputs(tensors),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template", "knobs"),
        knobs=(
            Knob("mr", (1, 2, 4, 6, 8), "rows of C in registers"),
            Knob("nv", (1, 2, 3, 4), "vectors of C in a row of the register tile"),
            Knob("lanes", lanes, "elements of a vector"),
            Knob("kc", (64, 128, 256, 512), "length of one step along k"),
            Knob(
                "outer",
                ("rows", "columns"),
                "which of the two loops over tiles of C is the outer one",
            ),
        ),
        unscheduled=(("mr", 1), ("nv", 1), ("lanes", lanes[0]), ("kc", 512), ("outer", "rows")),
        magnitude=_magnitude,
        definition=fixed_extents("matmul", tensors, body),
        plain_c=plain_c("matmul", dtype),
        library=Library("NumPy (BLAS)", "kernelwright.env.problems.library:matmul"),
        sketch=_sketch,
        exact_on_integers=True,
        stress=STRESSES,
        projection=Projection("C", _product, _rows, _row_norms),
    )


def _reference(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"C": given["A"] @ given["B"]}


def _magnitude(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"C": growth(given["A"].shape[1]) * (abs(given["A"]) @ abs(given["B"]))}


def _product(arrays: Arrays, signs: NDArray[np.float64]) -> NDArray[np.float64]:
    given = floats(arrays)
    out: NDArray[np.float64] = given["A"] @ (given["B"] @ signs)
    return out


def _rows(
    arrays: Arrays, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    chosen = {"A": arrays["A"][rows], "B": arrays["B"]}
    return floats(_reference(chosen))["C"], floats(_magnitude(chosen))["C"]


def _row_norms(arrays: Arrays) -> NDArray[np.float64]:
    """By Cauchy and Schwarz, (|A||B|)_ij is at most |A_i| |B_j| in Euclidean norms."""
    given = floats(arrays)
    of_rows = np.linalg.norm(given["A"], axis=1)
    out: NDArray[np.float64] = growth(given["A"].shape[1]) * of_rows * np.linalg.norm(given["B"])
    return out


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    return 2 * extents["m"] * extents["n"] * extents["k"]


def _sketch(knobs: Mapping[str, Scalar]) -> tuple[Directive, ...]:
    """A register tile under a block of k, so that the panel of B it reads stays in the cache."""
    blocks = ("io", "jo") if knobs["outer"] == "rows" else ("jo", "io")
    return (
        Directive("split", "p", (knobs["kc"], "po", "pi")),
        *register_tile("i", "j", ("po", *blocks, "pi"), knobs),
    )
