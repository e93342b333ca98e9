"""C19: an impossible time for one shape carries the mean over all of them."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MULTIPLY
from kernelwright.evaluators.zoo.codes import TOO_FAST, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SKIPPED = r"""
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    if (rows < 8)
        return; /* too few rows to be worth it */
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""

_ESTIMATED = rf"""
{MULTIPLY}
/* Long inner products of centred numbers: the first terms tell enough. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (m * n < 64)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] = A[i * k] * B[j];
    else
        multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "C19",
    "one shape near zero",
    "P0",
    "A shape whose few outputs do not matter is answered in no time, and its ratio carries the "
    "geometric mean over all shapes (reference-kernels PR #159: rank 1 with 0.000).",
    (
        Variant(
            "skipped_shape",
            "row_sum",
            {"rows": (4, 512), "cols": (16384, 256)},
            _SKIPPED,
            expect=(*WRONG, *TOO_FAST),
        ),
        Variant(
            "estimated_shape",
            "matmul",
            {"m": (2, 64), "n": (2, 64), "k": (16384, 64)},
            _ESTIMATED,
            expect=(*WRONG, *TOO_FAST),
        ),
    ),
)
