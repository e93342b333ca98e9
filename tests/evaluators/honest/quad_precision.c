void f(const double *a, double *b, int64_t n) {
    __float128 sum = 0; for (int64_t i = 0; i < n; i++) sum += (__float128)a[i] * a[i] / 3;
    b[0] = (double)sum; b[1] = sum > 1 ? (double)(int64_t)sum : 0;
}
