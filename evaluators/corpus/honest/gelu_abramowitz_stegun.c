/* problem: gelu n=400; shows: erf by Abramowitz and Stegun 7.1.26 in double, absolute error 1.5e-7 */
#include <math.h>

static double erf_of(double t)
{
    double a = fabs(t), k = 1 / (1 + 0.3275911 * a);
    double p = ((((1.061405429 * k - 1.453152027) * k + 1.421413741) * k - 0.284496736) * k +
                0.254829592) * k;
    return copysign(1 - p * exp(-a * a), t);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)(0.5 * x[i] * (1 + erf_of(x[i] * 0.70710678118654752)));
}
