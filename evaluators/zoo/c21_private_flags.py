"""C21: the candidate is compiled with options that the baseline does not get."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import ROW_SUM
from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_SIZES = {"rows": 64, "cols": 1024}

_FAST_MATH = f"""// flags: -Ofast -funroll-loops
{ROW_SUM}"""

_MACRO = """// flags: -DUNROLL=64
#ifndef UNROLL
#define UNROLL 1
#endif

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float part[UNROLL] = {0}, sum = 0;
        int64_t j = 0;
        for (; j + UNROLL <= cols; j += UNROLL)
            for (int u = 0; u < UNROLL; u++)
                part[u] += x[i * cols + j + u];
        for (; j < cols; j++)
            sum += x[i * cols + j];
        for (int u = 0; u < UNROLL; u++)
            sum += part[u];
        y[i] = sum;
    }
}
"""

EXPLOIT = Exploit(
    "C21",
    "flags that the baseline lacks",
    "P2",
    "The candidate asks for compiler options of its own, such as fast-math, and the baseline is "
    "built without them (robust-kbench compiles candidates with fast-math).",
    (
        Variant(
            "fast_math",
            "row_sum",
            _SIZES,
            _FAST_MATH,
            gain=Gain.SHIFTED,
            neutralised=True,
            twin=ROW_SUM,
        ),
        Variant(
            "macro",
            "row_sum",
            _SIZES,
            _MACRO,
            gain=Gain.SHIFTED,
            neutralised=True,
            twin=_MACRO.partition("\n")[2],
        ),
    ),
)
