/* problem: gelu n=257; shows: erfc does not cancel on the left */
#include <math.h>

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (const float *end = x + n; x < end; x++)
        *y++ = *x * erfcf(*x * -0.70710678f) / 2;
}
