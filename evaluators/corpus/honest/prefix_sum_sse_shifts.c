/* problem: prefix_sum n=103; tags: reassociated; shows: four lanes scanned by byte shifts, SSE2 or plain */
#ifdef __SSE2__
#include <emmintrin.h>
static __m128 scan(__m128 v)
{
    v = _mm_add_ps(v, _mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 4)));
    return _mm_add_ps(v, _mm_castsi128_ps(_mm_slli_si128(_mm_castps_si128(v), 8)));
}
#endif

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    int64_t i = 0;
    float sum = 0;
#ifdef __SSE2__
    __m128 carry = _mm_setzero_ps();
    for (; i + 4 <= n; i += 4) {
        __m128 v = _mm_add_ps(scan(_mm_loadu_ps(x + i)), carry);
        _mm_storeu_ps(y + i, v);
        carry = _mm_shuffle_ps(v, v, _MM_SHUFFLE(3, 3, 3, 3));
    }
    sum = _mm_cvtss_f32(carry);
#endif
    for (; i < n; i++)
        y[i] = sum += x[i];
}
