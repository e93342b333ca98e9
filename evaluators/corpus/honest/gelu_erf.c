/* problem: gelu n=301; shows: the definition, half of x first */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float half = 0.5f * x[i];
        y[i] = half + half * erff(x[i] * (float)M_SQRT1_2);
    }
}
