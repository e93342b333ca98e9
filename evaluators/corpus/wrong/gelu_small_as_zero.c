/* problem: gelu n=400; tags: range; shows: arguments below a hundredth give zero */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = fabsf(x[i]) < 1e-2f ? 0 : x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f));
}
