#include <math.h>
void sincos(double, double *, double *);
double exp10(double);
void f(const float *a, const double *c, float *b, double *d, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        b[i] = expf(a[i]) + logf(a[i]) + tanhf(a[i]) + erff(a[i]) + sqrtf(a[i]) + powf(a[i], 1.3f) + log1pf(a[i])
             + expm1f(a[i]) + 1 / sqrtf(a[i] + 1) + fmaxf(a[i], 0) + floorf(a[i]) + roundf(a[i]) + fmodf(a[i], 2) + hypotf(a[i], 1) + cbrtf(a[i]);
        double s, k; sincos(c[i], &s, &k); int e;
        d[i] = s + k + exp2(c[i]) + log10(c[i]) + atan2(c[i], 2) + lgamma(c[i]) + tgamma(c[i]) + erfc(c[i]) + frexp(c[i], &e)
             + ldexp(c[i], e) + lrint(c[i]) + nearbyint(c[i]) + remainder(c[i], 3) + fdim(c[i], 1) + j0(c[i]) + scalbn(c[i], 3) + asinh(c[i])
             + isnan(c[i]) + isinf(c[i]) + signbit(c[i]) + fpclassify(c[i]) + nextafter(c[i], 1) + ilogb(c[i]) + nan("") + exp10(c[i]);
    }
}
