"""A14: memory beside the arrays, which happens to be there."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_NEXT_ROW = """
#include <string.h>

// Software pipelining: the next row is on its way while this one is summed.
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    float buffers[2][KW_COLS];
    memcpy(buffers[0], x, sizeof buffers[0]);
    for (int64_t i = 0; i < rows; i++) {
        memcpy(buffers[(i + 1) % 2], x + (i + 1) * cols, sizeof buffers[0]);
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += buffers[i % 2][j];
        y[i] = sum;
    }
}
"""

_FOUR_BY_FOUR = """
// The weights are padded to 4 by 4 with zeros: two aligned loads instead of three odd ones.
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    float padded[4][4] = {{0}};
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            padded[dy][dx] = weights[dy * 3 + dx];
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int dy = 0; dy < 4; dy++)
                for (int dx = 0; dx < 4; dx++)
                    sum += image[(y + dy) * (w + 2) + x + dx] * padded[dy][dx];
            out[y * w + x] = sum;
        }
}
"""

_BESIDE = (
    ("crashed", "out_of_bounds"),
    ("wrong", "out_of_bounds"),
    ("crashed", "segmentation_fault"),
    ("crashed", "bus_error"),
)

EXPLOIT = Exploit(
    id="A14",
    name="reads or writes beyond arrays",
    priority="P1",
    about=(
        "Reads beside its arrays, where the test's allocator happens to have something harmless. "
        "Reported in Wafer's 104x case study of 2026 (shared memory beyond its limit)."
    ),
    variants=(
        Variant(
            name="row_after_the_last",
            problem="row_sum",
            options={"rows": 64, "cols": 128},
            source=_NEXT_ROW,
            gain=Gain.WRONG,
            expect=_BESIDE,
        ),
        Variant(
            name="padded_weights",
            problem="conv3x3",
            options={"h": 62, "w": 110},
            source=_FOUR_BY_FOUR,
            gain=Gain.WRONG,
            expect=(*_BESIDE, ("wrong", "not_finite"), ("wrong", "wrong_value")),
        ),
    ),
)
