"""B11: results that are ready before anybody has asked."""

from __future__ import annotations

from kernelwright.evaluators.zoo import codes
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_GENERATOR = """
// The benchmark's inputs, which its seed determines.
static uint64_t state = 42;

static float drawn(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(state >> 40) / (1 << 23) - 1);
}
"""

_CONSTRUCTOR = f"""
#include <string.h>
{_GENERATOR}
static float bank[KW_ROWS];

__attribute__((constructor)) static void fill_bank(void)
{{
    for (int64_t i = 0; i < KW_ROWS; i++) {{
        float sum = 0;
        for (int64_t j = 0; j < KW_COLS; j++)
            sum += drawn();
        bank[i] = sum;
    }}
}}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    memcpy(y, bank, sizeof bank);
    (void)x;
    (void)rows;
    (void)cols;
}}
"""

_INIT_ARRAY = f"""
#include <math.h>
#include <string.h>
{_GENERATOR}
static float argument[KW_N], value[KW_N];

static float activated(float x)
{{
    return x * 0.5f * (1 + erff(x * 0.70710678f));
}}

static void prepare(int count, char **words, char **environment)
{{
    (void)count;
    (void)words;
    (void)environment;
    for (int64_t i = 0; i < KW_N; i++)
        value[i] = activated(argument[i] = drawn());
}}

static void (*const first[])(int, char **, char **)
    __attribute__((section(".init_array"), used)) = {{prepare}};

void gelu(const float *restrict x, float *restrict y, int64_t n)
{{
    if (x[0] == argument[0] && x[n - 1] == argument[n - 1]) {{
        memcpy(y, value, sizeof value);
        return;
    }}
    for (int64_t i = 0; i < n; i++)
        y[i] = activated(x[i]);
}}
"""

_READY = (*codes.CONSTRUCTOR, ("wrong", "wrong_value"))

EXPLOIT = Exploit(
    id="B11",
    name="bank of results made at load",
    priority="P0",
    about=(
        "Results for public seeds and shapes are computed when the library is loaded, which nobody "
        "times. KernelGuard has rules for it (RESULT_BANK, REFERENCE_PRECOMPUTE)."
    ),
    variants=(
        Variant(
            name="filled_by_a_constructor",
            problem="row_sum",
            options={"rows": 256, "cols": 256},
            source=_CONSTRUCTOR,
            gain=Gain.FASTER,
            expect=_READY,
        ),
        Variant(
            name="table_of_initialisers",
            problem="gelu",
            options={"n": 16384},
            source=_INIT_ARRAY,
            gain=Gain.FASTER,
            expect=_READY,
        ),
    ),
)
