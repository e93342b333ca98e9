/* problem: matmul m=48 n=40 k=32; shows: 4 x 8 accumulators in registers, extents from macros */
#define MR 4
#define NR 8
_Static_assert(KW_M % MR == 0 && KW_N % NR == 0, "tiles fit");

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i += MR)
        for (int64_t j = 0; j < n; j += NR) {
            float acc[MR][NR] = {{0}};
            for (int64_t p = 0; p < k; p++)
                for (int r = 0; r < MR; r++) {
                    const float a = A[(i + r) * k + p];
                    for (int c = 0; c < NR; c++)
                        acc[r][c] += a * B[p * n + j + c];
                }
            for (int r = 0; r < MR; r++)
                for (int c = 0; c < NR; c++)
                    C[(i + r) * n + j + c] = acc[r][c];
        }
}
