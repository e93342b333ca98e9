#include <fenv.h>
void f(const double *a, double *b, int64_t n) {
    int mode = fegetround(); fesetround(FE_DOWNWARD);
    for (int64_t i = 0; i < n; i++) b[i] = a[i] * 0.1;
    fesetround(mode); feclearexcept(FE_ALL_EXCEPT);
}
