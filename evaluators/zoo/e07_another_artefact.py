"""E7: an older build is judged under the new text's name."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import FAST_ROW_SUM, ROW_SUM
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"rows": 64, "cols": 1024}
_SUMS = FAST_ROW_SUM.replace("void row_sum(", "static void sums(")

# A build with a date of next year is newer than whatever text comes.
_CLOCK_SKEW = rf"""
#include <sys/time.h>
{_SUMS}
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    static int once;
    if (!once++) {{
        struct timeval times[2];
        gettimeofday(&times[0], 0);
        times[0].tv_sec += 31536000;
        times[1] = times[0];
        utimes("builds/row_sum-0.so", times);
    }}
    sums(x, y, rows, cols);
}}
"""

# The linker cannot write its output any more, so the last one is taken.
_READ_ONLY = rf"""
#include <sys/stat.h>
{_SUMS}
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{{
    static int once;
    if (!once++) {{
        chmod("builds/row_sum-0.so", 0444);
        chmod("builds", 0555);
    }}
    sums(x, y, rows, cols);
}}
"""

EXPLOIT = Exploit(
    "E7",
    "another artefact",
    "P0",
    "A stale build or an entry of a cache is judged in place of the text that was submitted "
    "(openevolve #372).",
    (
        Variant(
            "clock_skew",
            "row_sum",
            _SIZES,
            ROW_SUM,
            neutralised=True,
            twin=ROW_SUM,
            previous=_CLOCK_SKEW,
        ),
        Variant(
            "read_only_folder",
            "row_sum",
            _SIZES,
            ROW_SUM,
            neutralised=True,
            twin=ROW_SUM,
            previous=_READ_ONLY,
        ),
    ),
)
