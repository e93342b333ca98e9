/* problem: transpose rows=32 cols=40; shows: 4 x 4 blocks by SSE shuffles */
#ifdef __SSE__
#include <xmmintrin.h>
static void block(const float *x, float *y, int64_t rows, int64_t cols)
{
    __m128 a = _mm_loadu_ps(x), b = _mm_loadu_ps(x + cols);
    __m128 c = _mm_loadu_ps(x + 2 * cols), d = _mm_loadu_ps(x + 3 * cols);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(y, a);
    _mm_storeu_ps(y + rows, b);
    _mm_storeu_ps(y + 2 * rows, c);
    _mm_storeu_ps(y + 3 * rows, d);
}
#else
static void block(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            y[j * rows + i] = x[i * cols + j];
}
#endif

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < cols; j += 4)
            block(x + i * cols + j, y + j * rows + i, rows, cols);
}
