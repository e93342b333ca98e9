/* problem: row_sum rows=20 cols=72; tags: reassociated; shows: AVX2 with horizontal adds */
#ifdef __AVX2__
#include <immintrin.h>
static float sum_of(const float *row, int64_t cols)
{
    __m256 a = _mm256_setzero_ps();
    int64_t j = 0;
    for (; j <= cols - 8; j += 8)
        a = _mm256_add_ps(a, _mm256_loadu_ps(row + j));
    __m128 h = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    h = _mm_hadd_ps(h, h);
    h = _mm_hadd_ps(h, h);
    float s = _mm_cvtss_f32(h);
    for (; j < cols; j++)
        s += row[j];
    return s;
}
#else
static float sum_of(const float *row, int64_t cols)
{
    float even = 0, odd = 0;
    for (int64_t j = 0; j < cols; j++)
        *(j % 2 ? &odd : &even) += row[j];
    return even + odd;
}
#endif

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = sum_of(x + i * cols, cols);
}
