/* problem: gelu n=1..500; shows: the function is passed as an argument, elements from the last to the first */
#include <math.h>

static float exact(float v) { return v * 0.5f * (1 + erff(v * 0.70710678f)); }

static void map(float (*function)(float), const float *x, float *y, int64_t n)
{
    while (n-- > 0)
        y[n] = function(x[n]);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    map(&exact, x, y, n);
}
