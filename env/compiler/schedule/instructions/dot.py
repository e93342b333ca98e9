"""Sums of short products: 16 lanes, in each four products of bytes added to a whole number of 32
bits, as ``vpdpbusd`` of AVX-512 VNNI does with one operand broadcast. The C is plain; a compiler
may choose that instruction for it.
"""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import Cast, Procedure
from kernelwright.env.compiler.schedule.instruction import Instruction
from kernelwright.env.compiler.schedule.instructions.write import accumulate, load, under, window

_LEFT = Cast("int32", load("A", "q"))
_RIGHT = Cast("int32", load("B", "lane", "q"))

DOT_4_U8S8 = Instruction(
    Procedure(
        "dot_4_u8s8",
        (),
        (
            window("A", (4,), "uint8"),
            window("B", (16, 4), "int8"),
            window("C", (16,), "int32", written=True),
        ),
        under(accumulate(load("C", "lane"), _LEFT, _RIGHT), lane=16, q=4),
    ),
    """for (int lane = 0; lane < 16; lane++) {
    int32_t sum = 0;
    for (int q = 0; q < 4; q++) sum += (int32_t)A[q * A_0] * (int32_t)B[lane * B_0 + q];
    C[lane] += sum;
}""",
    target="AVX-512 VNNI",
    contiguous=("B", "C"),
)
