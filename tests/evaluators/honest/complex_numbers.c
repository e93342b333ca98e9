#include <complex.h>
void f(const float complex *a, const double complex *c, float complex *b, double complex *d, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        b[i] = a[i] * a[n - 1 - i] / (a[i] + 1) + cexpf(a[i]);
        d[i] = c[i] * c[i] / c[n - 1 - i] + csqrt(c[i]) + cabs(c[i]) + cpow(c[i], 2.5);
    }
}
