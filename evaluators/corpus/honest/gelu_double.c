/* problem: gelu n=128; shows: all in double, rounded once */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = x[i];
        y[i] = (float)(v * (1 + erf(v / sqrt(2.0))) / 2);
    }
}
