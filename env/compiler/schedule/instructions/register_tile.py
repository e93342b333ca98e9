"""Register tiles of a matrix product, as GCC vector types: ``k`` outer products of a column of A
and a row of B, the sums in registers from the first to the last (the micro-kernel of Van Zee and
van de Geijn, BLIS, ACM TOMS 2015).
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.schedule.instruction import Instruction
from kernelwright.env.compiler.schedule.instructions.write import accumulate, load, under, window


def _register_tile(name: str, rows: int, lanes: int, dtype: str) -> Instruction:
    """``C[rows, lanes] += A[rows, k] * B[k, lanes]``, one vector a row."""
    c_type, size = {"float32": ("float", 4), "float64": ("double", 8)}[dtype]
    update = accumulate(load("C", "i", "j"), load("A", "i", "p"), load("B", "p", "j"))
    semantics = Procedure(
        name,
        ("k",),
        (
            window("A", (rows, "k"), dtype),
            window("B", ("k", lanes), dtype),
            window("C", (rows, lanes), dtype, written=True),
        ),
        under(update, p="k", i=rows, j=lanes),
    )
    attributes = f"vector_size({lanes * size}), aligned({size}), may_alias"
    text = f"""typedef {c_type} row __attribute__(({attributes}));
if (k < 1) return;
row sum[{rows}];
for (int i = 0; i < {rows}; i++) sum[i] = *(const row *)(C + i * C_0);
for (int64_t p = 0; p < k; p++) {{
    const row b = *(const row *)(B + p * B_0);
    for (int i = 0; i < {rows}; i++) sum[i] += A[i * A_0 + p * A_1] * b;
}}
for (int i = 0; i < {rows}; i++) *(row *)(C + i * C_0) = sum[i];"""
    return Instruction(semantics, text, contiguous=("B", "C"))


FMA_8X16_F32 = _register_tile("fma_8x16_f32", 8, 16, "float32")
FMA_6X16_F32 = _register_tile("fma_6x16_f32", 6, 16, "float32")
FMA_4X4_F64 = _register_tile("fma_4x4_f64", 4, 4, "float64")
