/* problem: gelu n=400; tags: special_case; shows: a quotient that is 0 / 0 at zero */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * x[i] / (2 * x[i]) * (1 + erff(x[i] * 0.70710678f));
}
