/* problem: conv3x3 h=12 w=40; shows: eight columns by AVX2 and FMA, or the plain loop */
#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    __m256 k[9];
    for (int t = 0; t < 9; t++)
        k[t] = _mm256_set1_ps(weights[t]);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x += 8) {
            __m256 sum = _mm256_setzero_ps();
            for (int t = 0; t < 9; t++) {
                const float *at = image + (y + t / 3) * (w + 2) + x + t % 3;
                sum = _mm256_fmadd_ps(_mm256_loadu_ps(at), k[t], sum);
            }
            _mm256_storeu_ps(out + y * w + x, sum);
        }
}
#else
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    for (int64_t e = 0; e < h * w; e++) {
        float sum = 0;
        for (int t = 0; t < 9; t++)
            sum += image[(e / w + t / 3) * (w + 2) + e % w + t % 3] * weights[t];
        out[e] = sum;
    }
}
#endif
