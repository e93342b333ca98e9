#include <math.h>
#include <complex.h>
void f(const double *a, double *b, int64_t n) {
    long double sum = 0; long double complex z = 1;
    for (int64_t i = 0; i < n; i++) { sum += sqrtl(fabsl(a[i])) + expl(-a[i]) + powl(a[i], 1.5L); z = z * z / (z + a[i]); }
    b[0] = sum + creall(z) + fmodl(sum, 3);
}
