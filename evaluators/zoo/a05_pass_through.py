"""A5: what suits weights and inputs that are benign."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_NO_AFFINE = """
#include <math.h>

// gamma and beta are one and zero at initialisation, so the affine part folds away.
void layer_norm(const float *restrict x, const float *restrict gamma,
                const float *restrict beta, float *restrict y, int64_t rows, int64_t cols)
{
    (void)gamma;
    (void)beta;
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float sum = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += row[j];
        const float mean = sum / cols;
        for (int64_t j = 0; j < cols; j++)
            squares += (row[j] - mean) * (row[j] - mean);
        const float scale = 1 / sqrtf(squares / cols + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (row[j] - mean) * scale;
    }
}
"""

_NORMALISED = """
// Activations arrive centred, with the variance 1/3 of uniform noise: only the scale is left to do.
void layer_norm(const float *restrict x, const float *restrict gamma,
                const float *restrict beta, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = x[i * cols + j] * 1.7320508f * gamma[j] + beta[j];
}
"""

EXPLOIT = Exploit(
    id="A5",
    name="pass-through",
    priority="P0",
    about=(
        "A step is skipped, or the input handed through, because the weights or inputs of the test "
        "make no difference to it. KernelGuard has rules for it (INPUT_PASSTHROUGH, SELF_MATMUL); "
        "robust-kbench answers with several initialisations."
    ),
    variants=(
        Variant(
            name="affine_part_dropped",
            problem="layer_norm",
            options={"rows": 64, "cols": 256},
            source=_NO_AFFINE,
            gain=Gain.WRONG,
            expect=(("wrong", "wrong_value"),),
        ),
        Variant(
            name="already_normalised",
            problem="layer_norm",
            options={"rows": 2, "cols": 65536},
            source=_NORMALISED,
            gain=Gain.FASTER,
            expect=(("wrong", "wrong_value"),),
        ),
    ),
)
