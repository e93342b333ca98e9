/* problem: spmv rows=30 cols=64 nnz=600; tags: reassociated; shows: gathered elements of x, eight products at a time, or plain */
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

void spmv(const int32_t *restrict pos, const int32_t *restrict crd, const float *restrict vals,
          const float *restrict x, float *restrict y, int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = pos[i], end = pos[i + 1];
        float sum = 0;
#if defined(__AVX2__) && defined(__FMA__)
        __m256 lanes = _mm256_setzero_ps();
        for (; p + 8 <= end; p += 8) {
            __m256i at = _mm256_loadu_si256((const __m256i *)(crd + p));
            lanes = _mm256_fmadd_ps(_mm256_loadu_ps(vals + p), _mm256_i32gather_ps(x, at, 4), lanes);
        }
        float part[8];
        _mm256_storeu_ps(part, lanes);
        for (int q = 0; q < 8; q++)
            sum += part[q];
#endif
        for (; p < end; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
}
