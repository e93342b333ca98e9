/* problem: gelu n=450; shows: beyond 6 on either side nothing is computed */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > 6)
            y[i] = x[i];
        else if (x[i] < -14)
            y[i] = -0.0f;
        else
            y[i] = 0.5f * x[i] * erfcf(-0.70710678f * x[i]);
    }
}
