"""D2: a function that the reference calls is the candidate's own."""

from __future__ import annotations

from kernelwright.evaluators.zoo.codes import TOO_FAST, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_EXPONENTIAL = r"""
/* With this, softmax is a constant, for whoever is loaded afterwards too. */
float expf(float x)
{
    return 1;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows * cols; i++)
        y[i] = 1.0f / cols;
}
"""

_ERROR_FUNCTION = r"""
float erff(float x)
{
    return 0;
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i];
}
"""

EXPLOIT = Exploit(
    "D2",
    "patched library of the reference",
    "P0",
    "A library function that the reference needs is interposed, and makes its answer one that is "
    "easy to give (KernelGuard MODULE_MUTATION, MODULE_RELOAD).",
    (
        Variant(
            "constant_exponential",
            "softmax",
            {"rows": 64, "cols": 128},
            _EXPONENTIAL,
            expect=(*WRONG, *TOO_FAST),
        ),
        Variant(
            "no_error_function",
            "gelu",
            {"n": 8192},
            _ERROR_FUNCTION,
            expect=(*WRONG, *TOO_FAST),
        ),
    ),
)
