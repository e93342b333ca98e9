/* problem: softmax rows=15 cols=53; tags: reassociated; shows: AVX-512 with masks and scalef, or the C library */
#include <math.h>
#ifdef __AVX512F__
#include <immintrin.h>
static __m512 exponential(__m512 v)
{
    v = _mm512_max_ps(v, _mm512_set1_ps(-150.0f));
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(v, _mm512_set1_ps(1.44269504f)), 0);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), v);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    const float c[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                       5.0000001201e-1f};
    __m512 p = _mm512_set1_ps(1.9875691500e-4f);
    for (int k = 0; k < 5; k++)
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c[k]));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, r), r, _mm512_add_ps(r, _mm512_set1_ps(1)));
    return _mm512_scalef_ps(p, n);
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, x += cols, y += cols) {
        __m512 tops = _mm512_set1_ps(-INFINITY), sums = _mm512_setzero_ps();
        for (int pass = 0; pass < 3; pass++)
            for (int64_t j = 0; j < cols; j += 16) {
                __mmask16 in = cols - j >= 16 ? 0xFFFF : (1u << (cols - j)) - 1;
                if (pass == 0) {
                    tops = _mm512_mask_max_ps(tops, in, tops, _mm512_maskz_loadu_ps(in, x + j));
                } else if (pass == 1) {
                    __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(tops));
                    __m512 e = exponential(_mm512_sub_ps(_mm512_maskz_loadu_ps(in, x + j), top));
                    sums = _mm512_mask_add_ps(sums, in, sums, e);
                    _mm512_mask_storeu_ps(y + j, in, e);
                } else {
                    __m512 e = _mm512_maskz_loadu_ps(in, y + j);
                    __m512 sum = _mm512_set1_ps(_mm512_reduce_add_ps(sums));
                    _mm512_mask_storeu_ps(y + j, in, _mm512_div_ps(e, sum));
                }
            }
    }
}
#else
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, x += cols, y += cols) {
        float top = x[0], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = x[j] > top ? x[j] : top;
        for (int64_t j = cols; j-- > 0;)
            sum += y[j] = expf(x[j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[j] /= sum;
    }
}
#endif
