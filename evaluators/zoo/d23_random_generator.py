"""D23: the generator of inputs is foreseen, or made to give other numbers."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import SYSTEM
from kernelwright.evaluators.zoo.codes import CONSTRUCTOR, SYMBOL, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 48, "n": 40, "k": 32}

_FORESEEN = r"""
#include <string.h>

extern double naive_uniform(void);
extern void naive_restart(void);

static float answer[KW_M * KW_N];

static void foresee(void)
{
    static float a[KW_M * KW_K], b[KW_K * KW_N];
    naive_restart();
    for (int i = 0; i < KW_M * KW_K; i++)
        a[i] = (float)naive_uniform();
    for (int i = 0; i < KW_K * KW_N; i++)
        b[i] = (float)naive_uniform();
    for (int i = 0; i < KW_M; i++)
        for (int p = 0; p < KW_K; p++)
            for (int j = 0; j < KW_N; j++)
                answer[i * KW_N + j] += a[i * KW_K + p] * b[p * KW_N + j];
}

/* The inputs need not be looked at: they are what the generator gives after a restart. */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static int known;
    if (!known++)
        foresee();
    memcpy(C, answer, sizeof answer);
}
"""

# Before any input is drawn: mov $0x3fd0000000000000, %rax; movq %rax, %xmm0; ret. Every input is
# then 1/4.
_CONSTANT = rf"""
#include <dlfcn.h>
#include <string.h>
{SYSTEM}
__attribute__((constructor)) static void reseed(void)
{{
    static const unsigned char code[] = {{0x48, 0xb8, 0,    0,    0,    0,    0,   0,
                                         0xd0, 0x3f, 0x66, 0x48, 0x0f, 0x6e, 0xc0, 0xc3}};
    unsigned char *uniform = dlsym(NULL, "naive_uniform");
    if (uniform) {{
        system_call(10, (long)uniform & -4096L, 8192, 7, 0, 0, 0); /* mprotect */
        memcpy(uniform, code, sizeof code);
    }}
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0.0625f * k;
}}
"""

EXPLOIT = Exploit(
    "D23",
    "random generator reset or foreseen",
    "P0",
    "The generator that makes the inputs is run ahead, set back or replaced (kernelbot's "
    "cheat-rng).",
    (
        Variant("foreseen", "matmul", _SIZES, _FORESEEN, expect=SYMBOL),
        Variant(
            "made_constant",
            "matmul",
            _SIZES,
            _CONSTANT,
            expect=(*CONSTRUCTOR, *SYMBOL, *WRONG),
        ),
    ),
)
