/* problem: gelu n=400; tags: precision; shows: results in half precision */
#include <math.h>

static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = half(x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f)));
}
