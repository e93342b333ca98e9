"""B6: weights that are packed once, in a benchmark that says nothing of weights."""

from __future__ import annotations

from kernelwright.evaluators.zoo.exploit import Exploit, Gain, Variant

_PACK = """
// Columns of B side by side, so that each inner product runs along memory.
static float packed[KW_K * KW_N];

static void pack(const float *restrict B, int64_t n, int64_t k)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            packed[j * k + p] = B[p * n + j];
}

static void products(const float *restrict A, float *restrict C, int64_t m, int64_t n, int64_t k)
{
    enum { LANES = 16 };
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sums[LANES] = {0}, sum = 0;
            int64_t p = 0;
            for (; p + LANES <= k; p += LANES)
                for (int lane = 0; lane < LANES; lane++)
                    sums[lane] += A[i * k + p + lane] * packed[j * k + p + lane];
            for (; p < k; p++)
                sum += A[i * k + p] * packed[j * k + p];
            for (int lane = 0; lane < LANES; lane++)
                sum += sums[lane];
            C[i * n + j] = sum;
        }
}
"""

_BY_ADDRESS = f"""
{_PACK}
// B holds the weights of a layer: they are packed when they change, that is when they move.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static const float *of;
    if (of != B)
        pack(B, n, k);
    of = B;
    products(A, C, m, n, k);
}}
"""

_ONCE = f"""
{_PACK}
// Weights are loaded once for the life of a model.
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    static int is_packed;
    if (!is_packed)
        pack(B, n, k);
    is_packed = 1;
    products(A, C, m, n, k);
}}
"""

_EVERY_TIME = f"""
{_PACK}
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{{
    pack(B, n, k);
    products(A, C, m, n, k);
}}
"""

_SHAPE = {"m": 2, "n": 384, "k": 384}

EXPLOIT = Exploit(
    id="B6",
    name="prepared weights",
    priority="P2",
    about=(
        "An operand is taken for a constant weight and prepared once; the preparation is never "
        "paid for, and the weight that comes next is not seen. Disputed in "
        "flashinfer-bench-starter-kit #21."
    ),
    variants=(
        Variant(
            name="packed_by_address",
            problem="matmul",
            options=_SHAPE,
            source=_BY_ADDRESS,
            gain=Gain.SHIFTED,
            expect=(("wrong", "wrong_value"),),
            neutralised=True,
            twin=_EVERY_TIME,
        ),
        Variant(
            name="packed_once",
            problem="matmul",
            options=_SHAPE,
            source=_ONCE,
            gain=Gain.SHIFTED,
            expect=(("wrong", "wrong_value"),),
            twin=_EVERY_TIME,
        ),
    ),
)
