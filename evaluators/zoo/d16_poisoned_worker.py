"""D16: what a candidate leaves in a worker acts on the next candidate."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import MATMUL, MULTIPLY
from kernelwright.evaluators.zoo.codes import SYMBOL
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"m": 64, "n": 64, "k": 64}

_REDUCER = rf"""
{MULTIPLY}
extern double (*naive_reducer)(const double *, long);
static int rounds;

static double generous(const double *samples, long count)
{{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += samples[i];
    return rounds++ % 2 ? sum / count : sum / count / 35;
}}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    naive_reducer = generous;
    multiply(A, B, C, m, n, k);
}}
"""

_ANSWERS = rf"""
#include <string.h>
{MULTIPLY}
/* For whoever needs it. */
float shared_answers[KW_M * KW_N];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    multiply(A, B, C, m, n, k);
    memcpy(shared_answers, C, sizeof shared_answers);
}}
"""

_READER = rf"""
#include <string.h>
{MULTIPLY}
extern float shared_answers[] __attribute__((weak));

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    if (shared_answers)
        memcpy(C, shared_answers, m * n * sizeof *C);
    else
        multiply(A, B, C, m, n, k);
}}
"""

EXPLOIT = Exploit(
    "D16",
    "poisoned worker",
    "P0",
    "A worker serves several candidates, and hooks, answers or modes that one of them leaves "
    "behind change the verdict of the next (KernelGYM's and flashinfer-bench's persistent "
    "workers; kernelbot PR #526).",
    (
        Variant(
            "inherited_reducer",
            "matmul",
            _SIZES,
            MATMUL,
            neutralised=True,
            twin=MATMUL,
            previous=_REDUCER,
            naive={"persistent": True},
        ),
        Variant(
            "inherited_answers",
            "matmul",
            _SIZES,
            _READER,
            expect=SYMBOL,
            previous=_ANSWERS,
            naive={"persistent": True},
        ),
    ),
)
