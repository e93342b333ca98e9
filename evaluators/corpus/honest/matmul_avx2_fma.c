/* problem: matmul m=18 n=48 k=64; shows: AVX2 and FMA intrinsics with a plain fallback */
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
static void tile(const float *A, const float *B, float *C, int64_t n, int64_t k)
{
    __m256 c[6][2];
    for (int r = 0; r < 6; r++)
        c[r][0] = c[r][1] = _mm256_setzero_ps();
    for (int64_t p = 0; p < k; p++) {
        __m256 b0 = _mm256_loadu_ps(B + p * n), b1 = _mm256_loadu_ps(B + p * n + 8);
#pragma GCC unroll 6
        for (int r = 0; r < 6; r++) {
            __m256 a = _mm256_broadcast_ss(A + r * k + p);
            c[r][0] = _mm256_fmadd_ps(a, b0, c[r][0]);
            c[r][1] = _mm256_fmadd_ps(a, b1, c[r][1]);
        }
    }
    for (int r = 0; r < 6; r++) {
        _mm256_storeu_ps(C + r * n, c[r][0]);
        _mm256_storeu_ps(C + r * n + 8, c[r][1]);
    }
}
#else
static void tile(const float *A, const float *B, float *C, int64_t n, int64_t k)
{
    for (int r = 0; r < 6; r++)
        for (int j = 0; j < 16; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[r * k + p] * B[p * n + j];
            C[r * n + j] = sum;
        }
}
#endif

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i += 6)
        for (int64_t j = 0; j < n; j += 16)
            tile(A + i * k, B + j, C + i * n + j, n, k);
}
