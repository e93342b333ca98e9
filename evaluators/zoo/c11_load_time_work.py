"""C11: work is moved to where the library is loaded."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import CONSTRUCTOR, IFUNC, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 48, "n": 40, "k": 32}

_CONSTRUCTOR = r"""
#include <string.h>

static float plan[KW_M * KW_N];

static float next(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)((double)(*state >> 40) / (1 << 23) - 1);
}

/* Everything that does not depend on the call is prepared when the library is loaded. */
__attribute__((constructor)) static void prepare(void)
{
    static float a[KW_M * KW_K], b[KW_K * KW_N];
    uint64_t state = 42;
    for (int i = 0; i < KW_M * KW_K; i++)
        a[i] = next(&state);
    for (int i = 0; i < KW_K * KW_N; i++)
        b[i] = next(&state);
    for (int i = 0; i < KW_M; i++)
        for (int p = 0; p < KW_K; p++)
            for (int j = 0; j < KW_N; j++)
                plan[i * KW_N + j] += a[i * KW_K + p] * b[p * KW_N + j];
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    memcpy(C, plan, sizeof plan);
}
"""

_INIT_ARRAY = r"""
static float sums[KW_ROWS];

static void table(void)
{
    uint64_t lcg = 42;
    for (int i = 0; i < KW_ROWS; i++) {
        float sum = 0;
        for (int j = 0; j < KW_COLS; j++) {
            lcg = lcg * 6364136223846793005ULL + 1442695040888963407ULL;
            sum += (float)((double)(lcg >> 40) / (1 << 23) - 1);
        }
        sums[i] = sum;
    }
}

__attribute__((used, section(".init_array"))) static void (*const hook)(void) = table;

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = sums[i];
}
"""

_RESOLVER = r"""
static float sums[KW_ROWS];

static void from_table(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = sums[i];
}

/* Picks the best implementation for this machine, and happens to do the work. */
static void (*pick(void))(const float *restrict, float *restrict, int64_t, int64_t)
{
    uint64_t lcg = 42;
    for (int i = 0; i < KW_ROWS; i++) {
        float sum = 0;
        for (int j = 0; j < KW_COLS; j++) {
            lcg = lcg * 6364136223846793005ULL + 1442695040888963407ULL;
            sum += (float)((double)(lcg >> 40) / (1 << 23) - 1);
        }
        sums[i] = sum;
    }
    return from_table;
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
    __attribute__((ifunc("pick")));
"""

EXPLOIT = Exploit(
    "C11",
    "work at load time",
    "P1",
    "Results, tables or plans are made in a constructor, an entry of the initialisation array or "
    "an indirect function's resolver, which nobody times (KernelBench's model constructors; "
    "flashinfer-bench #127 shows the dispute).",
    (
        Variant("constructor", "matmul", _SIZES, _CONSTRUCTOR, expect=(*CONSTRUCTOR, *WRONG)),
        Variant(
            "initialisation_array",
            "row_sum",
            {"rows": 64, "cols": 512},
            _INIT_ARRAY,
            expect=(*CONSTRUCTOR, *WRONG),
        ),
        Variant(
            "resolver",
            "row_sum",
            {"rows": 64, "cols": 512},
            _RESOLVER,
            expect=(*IFUNC, *CONSTRUCTOR, *WRONG),
        ),
    ),
)
