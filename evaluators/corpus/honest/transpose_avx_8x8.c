/* problem: transpose rows=24 cols=48; shows: 8 x 8 blocks by AVX unpacks, shuffles and lane permutes */
#ifdef __AVX__
#include <immintrin.h>
static void block(const float *x, float *y, int64_t rows, int64_t cols)
{
    __m256 r[8], t[8];
    for (int i = 0; i < 8; i++)
        r[i] = _mm256_loadu_ps(x + i * cols);
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(y + i * rows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(y + (i + 4) * rows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}
#else
static void block(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            y[j * rows + i] = x[i * cols + j];
}
#endif

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j += 8)
        for (int64_t i = 0; i < rows; i += 8)
            block(x + i * cols + j, y + j * rows + i, rows, cols);
}
