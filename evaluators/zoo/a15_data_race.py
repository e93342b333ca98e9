"""A15: a data race that nobody has run in parallel."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_PREFIX = """// flags: -fopenmp
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    y[0] = x[0];
    #pragma omp parallel for schedule(static)
    for (int64_t i = 1; i < n; i++)
        y[i] = y[i - 1] + x[i];
}
"""

_SHARED = """// flags: -fopenmp
#include <string.h>

// Parallel along k, where the work is; every thread adds its products to C.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    memset(C, 0, (size_t)(m * n) * sizeof(float));
    #pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
}
"""

EXPLOIT = Exploit(
    id="A15",
    name="race that passes by luck",
    priority="P1",
    about=(
        "Iterations that depend on each other run in parallel, and the test that passed ran on one "
        "thread, or was lucky. General; KernelBench and SOL-ExecBench repeat runs against it."
    ),
    variants=(
        Variant(
            name="dependent_iterations",
            problem="prefix_sum",
            options={"n": 65536},
            source=_PREFIX,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"), ("wrong", "not_finite"), ("wrong", "unwritten")),
            threads=2,
        ),
        Variant(
            name="shared_accumulator",
            problem="matmul",
            options={"m": 64, "n": 64, "k": 256},
            source=_SHARED,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
            threads=2,
        ),
    ),
)
