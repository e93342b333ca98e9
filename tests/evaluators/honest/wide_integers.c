void f(const int64_t *a, int64_t *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        __int128 p = (__int128)a[i] * a[n - 1 - i] + 1; unsigned __int128 u = p;
        b[i] = (int64_t)(p / (a[i] | 1) + p % 7 + u / 3 + u % 11) + (int64_t)(double)p + (int64_t)(float)u;
    }
}
