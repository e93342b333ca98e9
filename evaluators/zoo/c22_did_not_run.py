"""C22: something else was timed than what was submitted, because that did not build."""

from __future__ import annotations

from kernelwright.evaluators.zoo.carriers import FAST_ROW_SUM
from kernelwright.evaluators.zoo.codes import COMPILER, WRONG
from kernelwright.evaluators.zoo.exploit import Exploit, Variant

_SIZES = {"rows": 64, "cols": 1024}

_BROKEN = r"""
#if !defined(__AVX10_2__)
#error "this kernel needs AVX10.2"
#endif

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
}
"""

_ENDLESS_INCLUDE = r"""
#include __FILE__

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
}
"""

# The compiler succeeds, and writes nothing.
_SYNTAX_ONLY = r"""// flags: -fsyntax-only
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
}
"""

EXPLOIT = Exploit(
    "C22",
    "timing what did not run",
    "P0",
    "The build fails, or makes nothing, and the harness times what it finds in its place: an older "
    "library, a fall-back (cubek PR #611; openevolve #372; TileOPs #1792).",
    (
        Variant("failed_build", "row_sum", _SIZES, _BROKEN, expect=COMPILER, previous=FAST_ROW_SUM),
        Variant(
            "endless_include",
            "row_sum",
            _SIZES,
            _ENDLESS_INCLUDE,
            expect=COMPILER,
            previous=FAST_ROW_SUM,
        ),
        Variant("no_output", "row_sum", _SIZES, _SYNTAX_ONLY, expect=WRONG, previous=FAST_ROW_SUM),
    ),
)
