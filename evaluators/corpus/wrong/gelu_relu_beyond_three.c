/* problem: gelu n=400; tags: shortcut; shows: beyond 3 on either side it is taken for max(0, x) */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 3 ? x[i] : x[i] < -3 ? 0 : x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f));
}
