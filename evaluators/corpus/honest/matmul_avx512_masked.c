/* problem: matmul m=13 n=45 k=27; shows: AVX-512 with a mask for the last columns */
#ifdef __AVX512F__
#include <immintrin.h>
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t j = 0; j < n; j += 16) {
        __mmask16 lanes = n - j >= 16 ? 0xFFFF : (__mmask16)((1u << (n - j)) - 1);
        for (int64_t i = 0; i < m; i++) {
            __m512 acc = _mm512_setzero_ps();
            for (int64_t p = 0; p < k; p++)
                acc = _mm512_fmadd_ps(_mm512_set1_ps(A[i * k + p]),
                                      _mm512_maskz_loadu_ps(lanes, B + p * n + j), acc);
            _mm512_mask_storeu_ps(C + i * n + j, lanes, acc);
        }
    }
}
#else
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float acc = 0;
            for (int64_t p = 0; p < k; p++)
                acc += A[i * k + p] * B[p * n + j];
            C[i * n + j] = acc;
        }
}
#endif
