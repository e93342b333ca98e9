"""A8: right for inputs of the kind that tests draw."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_POLYNOMIAL = """
// erf by its Taylor series, enough terms for normalised activations.
void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float z = x[i] * 0.70710678f, s = z * z;
        float p = 1.0f / 1320;
        p = p * -s + 1.0f / 216;
        p = p * -s + 1.0f / 42;
        p = p * -s + 0.1f;
        p = p * -s + 1.0f / 3;
        p = p * -s + 1;
        y[i] = x[i] * 0.5f * (1 + 1.1283792f * z * p);
    }
}
"""

_BALANCED = """
// Rows are balanced: none is longer than a few times the mean, so the buffer has a fixed size.
void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    const int64_t most = 6 * ((nnz + rows - 1) / rows);
    (void)cols;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t begin = pos[i];
        const int64_t end = pos[i + 1] - begin < most ? pos[i + 1] : begin + most;
        float sum = 0;
        for (int64_t p = begin; p < end; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
"""

EXPLOIT = Exploit(
    id="A8",
    name="shortcut for the test's distribution",
    priority="P1",
    about=(
        "Right for short ranges, balanced rows or well-conditioned data, as tests draw them, "
        "and wrong beyond. Reported in KernelBench-Hard's diary of August 2026 and in "
        "reference-kernels PR #151 and #152."
    ),
    variants=(
        Variant(
            name="small_arguments",
            problem="gelu",
            options={"n": 16384},
            source=_POLYNOMIAL,
            gain=Gain.FASTER,
            expect=(("wrong", "wrong_value"), ("wrong", "not_finite")),
        ),
        Variant(
            name="balanced_rows",
            problem="spmv",
            options={"rows": 2048, "cols": 2048, "nnz": 32768},
            source=_BALANCED,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
    ),
)
