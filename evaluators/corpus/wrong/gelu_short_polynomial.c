/* problem: gelu n=400; tags: approximation; shows: erf by Abramowitz and Stegun 7.1.25, three terms */
#include <math.h>

static float erf_of(float t)
{
    float a = fabsf(t), k = 1 / (1 + 0.47047f * a);
    float p = ((0.7478556f * k - 0.0958798f) * k + 0.3480242f) * k;
    return copysignf(1 - p * expf(-a * a), t);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * 0.5f * (1 + erf_of(x[i] * 0.70710678f));
}
