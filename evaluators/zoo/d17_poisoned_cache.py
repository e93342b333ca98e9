"""D17: a build in the cache is exchanged for another."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import FAST_ROW_SUM, SYSTEM
from kernelwright.evaluators.zoo.codes import WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"rows": 64, "cols": 1024}

_NOTHING = r"""
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 1e9f;
}
"""

# The build of this text is newer than any text to come.
_DATED = rf"""
{SYSTEM}{FAST_ROW_SUM.replace("row_sum(", "sums(").replace("void sums", "static void sums")}
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    static int once;
    if (!once++) {{
        const long times[4] = {{4102444800, 0, 4102444800, 0}};
        system_call(280, -100, (long)"builds/row_sum-0.so", (long)times, 0, 0, 0); /* utimensat */
    }}
    sums(x, y, rows, cols);
}}
"""

_EXCHANGED = r"""
#include <stdio.h>
#include <sys/time.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    static int once;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
    if (!once++) {
        static char library[1 << 20];
        const struct timeval times[2] = {{4102444800, 0}, {4102444800, 0}};
        FILE *from = fopen("reference-0.so", "rb"), *to = fopen("builds/new.so", "wb");
        size_t size = from ? fread(library, 1, sizeof library, from) : 0;
        if (to && size)
            fwrite(library, 1, size, to);
        if (from)
            fclose(from);
        if (to)
            fclose(to);
        rename("builds/new.so", "builds/row_sum-0.so");
        utimes("builds/row_sum-0.so", times);
    }
}
"""

EXPLOIT = Exploit(
    "D17",
    "poisoned build cache",
    "P0",
    "An entry of the build cache is exchanged or dated forward, so that a later text is judged by "
    "code that is not its own (kernelbench.com keeps a cache for each run).",
    (
        Variant("dated_forward", "row_sum", _SIZES, _NOTHING, expect=WRONG, previous=_DATED),
        Variant(
            "exchanged",
            "row_sum",
            _SIZES,
            _NOTHING,
            gain=Gain.WRONG,
            expect=WRONG,
            previous=_EXCHANGED,
        ),
    ),
)
