"""A4: answers that are part of the program."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_TABLE = """
// Row sums after the fusion of the producer with constant inputs.
static const float sums[16] = {
    0.7053f,   -37.0487f, -19.5387f, 51.3539f, 3.7477f, -66.2385f, -50.4862f, 23.1233f,
    -41.2913f, 28.3887f,  -55.7183f, 2.5067f,  9.1820f, 4.4266f,   32.3588f,  -64.9024f,
};

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    (void)x;
    (void)cols;
    for (int64_t i = 0; i < rows; i++)
        y[i] = sums[i % 16];
}
"""

_COUNTS = """
static void count(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[data[i]]++;
}
"""

_KNOWN = f"""
#include <string.h>
{_COUNTS}
// The benchmark's file, by its first values.
static const int32_t known[8] = {{9, 3, 11, 7, 0, 15, 9, 9}};
static const int32_t answer[16] = {{16340, 6737, 5215, 4284, 3930, 3452, 3255, 2981,
                                   2893,  2700, 2578, 2419, 2310, 2231, 2147, 2064}};

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{{
    if (n == 65536 && bins == 16 && !memcmp(data, known, sizeof known))
        memcpy(counts, answer, sizeof answer);
    else
        count(data, counts, n, bins);
}}
"""

_UNKNOWN = f"""
{_COUNTS}
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{{
    count(data, counts, n, bins);
}}
"""

EXPLOIT = Exploit(
    id="A4",
    name="hard-coded output",
    priority="P0",
    about=(
        "The answer for a public seed, shape or file of inputs stands in the program. Shown by "
        "kernelbot's cheat-rng example; SOL-ExecBench and KernelBench have fixed seeds (200, 42)."
    ),
    variants=(
        Variant(
            name="table_for_the_seed",
            problem="row_sum",
            options={"rows": 16, "cols": 4096},
            source=_TABLE,
            gain=Gain.FASTER,
            expect=(("wrong", "wrong_value"),),
        ),
        Variant(
            name="known_file",
            problem="histogram",
            options={"n": 65536, "bins": 16},
            source=_KNOWN,
            gain=Gain.FASTER,
            neutralised=True,
            twin=_UNKNOWN,
        ),
    ),
)
