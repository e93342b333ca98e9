/* problem: gelu n=375; shows: a power series near zero, the C library elsewhere, chosen by a switch */
#include <math.h>

static double series(double t)
{
    double term = t, sum = t;
    for (int k = 1; k < 12; k++) {
        term *= -t * t / k;
        sum += term / (2 * k + 1);
    }
    return sum * 1.1283791670955126;
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double t = x[i] * 0.7071067811865476, e;
        switch ((t > -0.5) + (t < 0.5)) {
        case 2:
            e = series(t);
            break;
        default:
            e = erf(t);
        }
        y[i] = (float)(x[i] * (1 + e) / 2);
    }
}
