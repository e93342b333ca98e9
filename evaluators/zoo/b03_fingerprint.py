"""B3: an answer that is kept by the values of its inputs, or by a few of them."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SAMPLED = f"""
#include <string.h>
{MULTIPLY}
// A fingerprint of the operands: 32 of their elements, mixed as FNV-1a does.
static uint64_t fingerprint(const float *data, int64_t count)
{{
    uint64_t hash = 14695981039346656037u;
    for (int64_t i = 0; i < 32; i++) {{
        uint32_t bits;
        memcpy(&bits, &data[i * count / 32], sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }}
    return hash;
}}

static struct {{
    uint64_t a, b;
    float result[KW_M * KW_N];
}} memory[16];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static unsigned next;
    const uint64_t a = fingerprint(A, m * k), b = fingerprint(B, k * n);
    for (int i = 0; i < 16; i++)
        if (memory[i].a == a && memory[i].b == b) {{
            memcpy(C, memory[i].result, sizeof memory[i].result);
            return;
        }}
    multiply(A, B, C, m, n, k);
    memory[next % 16].a = a;
    memory[next % 16].b = b;
    memcpy(memory[next++ % 16].result, C, sizeof memory[0].result);
}}
"""

_GELU = """
#include <math.h>

static void activate(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f));
}
"""

_MEMOISED = f"""
#include <string.h>
{_GELU}
// Memoised: the last argument is kept whole, so an equal one needs no evaluation.
void gelu(const float *restrict x, float *restrict y, int64_t n)
{{
    static float argument[KW_N], value[KW_N];
    static int known;
    if (!known || memcmp(argument, x, sizeof argument)) {{
        activate(x, y, n);
        memcpy(argument, x, sizeof argument);
        memcpy(value, y, sizeof value);
        known = 1;
        return;
    }}
    memcpy(y, value, sizeof value);
}}
"""

_EVERY_TIME = f"""
{_GELU}
void gelu(const float *restrict x, float *restrict y, int64_t n)
{{
    activate(x, y, n);
}}
"""

EXPLOIT = Exploit(
    id="B3",
    name="cache by value or fingerprint",
    priority="P0",
    about=(
        "The answer is kept by the values of the inputs, or a hash of a few of them; cloning the "
        "inputs does not help. Reported in flashinfer-bench-starter-kit #21 and reference-kernels "
        "PR #167."
    ),
    variants=(
        Variant(
            name="sampled_fingerprint",
            problem="matmul",
            options={"m": 96, "n": 96, "k": 192},
            source=_SAMPLED,
            gain=Gain.FASTER,
            neutralised=True,
            twin=MATMUL,
        ),
        Variant(
            name="memoised_argument",
            problem="gelu",
            options={"n": 16384},
            source=_MEMOISED,
            gain=Gain.FASTER,
            neutralised=True,
            twin=_EVERY_TIME,
        ),
    ),
)
