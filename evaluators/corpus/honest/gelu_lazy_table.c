/* problem: gelu n=512; tags: lazy_table; shows: a Taylor step from a static table of erf that the first call fills */
#include <math.h>
#define STEPS 32
#define REACH 6

static double values[STEPS * REACH + 1], slopes[STEPS * REACH + 1];
static int is_filled;

static void fill(void)
{
    for (int k = 0; k <= STEPS * REACH; k++) {
        double t = (double)k / STEPS;
        values[k] = erf(t);
        slopes[k] = exp(-t * t) * 2 / sqrt(M_PI);
    }
    is_filled = 1;
}

static double erf_of(double t)
{
    double a = fabs(t);
    if (a >= REACH)
        return copysign(1, t);
    int k = (int)(a * STEPS + 0.5);
    double c = (double)k / STEPS, d = a - c;
    double taylor = 1 - d * (c + d * ((1 - 2 * c * c) / 3 + d * (c * (2 * c * c - 3) / 6)));
    return copysign(values[k] + slopes[k] * d * taylor, t);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    if (!is_filled)
        fill();
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(x[i] * 0.5 * (1 + erf_of(x[i] * M_SQRT1_2)));
}
