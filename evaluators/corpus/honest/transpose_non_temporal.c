/* problem: transpose rows=64 cols=36; shows: non-temporal stores and a fence */
#ifdef __SSE2__
#include <emmintrin.h>
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i += 4) {
            const float *at = x + i * cols + j;
            _mm_stream_ps(y + j * rows + i, _mm_setr_ps(at[0], at[cols], at[2 * cols], at[3 * cols]));
        }
    _mm_sfence();
}
#else
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[i * cols + j];
}
#endif
