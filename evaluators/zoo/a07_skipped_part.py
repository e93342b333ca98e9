"""A7: less than the whole, within what may differ."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_LAST_ROW = """
// Rows in tiles of 8; the last tile of a matrix stops one short to stay inside its panel.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t ti = 0; ti < m; ti += 8) {
        const int64_t end = ti + 8 < m ? ti + 8 : m - 1;
        for (int64_t i = ti; i < end; i++) {
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] = 0;
            for (int64_t p = 0; p < k; p++)
                for (int64_t j = 0; j < n; j++)
                    C[i * n + j] += A[i * k + p] * B[p * n + j];
        }
    }
}
"""

_NEIGHBOURS = """
// One row in 128 is interpolated from its neighbour, as the tail of a block would waste lanes.
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        if (i % 128 == 127) {
            y[i] = y[i - 1];
            continue;
        }
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
"""

EXPLOIT = Exploit(
    id="A7",
    name="skipped part",
    priority="P0",
    about=(
        "A tail, a tile or some of the batch is left out, within the share of elements that may "
        "differ. SOL-ExecBench accepts 99% by default, flashinfer-bench a share of the caller's."
    ),
    variants=(
        Variant(
            name="last_row",
            problem="matmul",
            options={"m": 128, "n": 64, "k": 64},
            source=_LAST_ROW,
            gain=Gain.WRONG,
            expect=(("wrong", "unwritten"), ("wrong", "wrong_value")),
        ),
        Variant(
            name="row_of_its_neighbour",
            problem="row_sum",
            options={"rows": 512, "cols": 128},
            source=_NEIGHBOURS,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
    ),
)
