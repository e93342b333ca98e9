void f(const uint64_t *a, uint64_t *b, double *c, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        b[i] = __builtin_popcountll(a[i]) + __builtin_clzll(a[i] | 1) + __builtin_bswap64(a[i]) + __builtin_parityll(a[i]);
        __builtin_prefetch(&a[i + 8]);
        c[i] = __builtin_powi((double)a[i], 3) + __builtin_fma(c[i], 2, 1) + __builtin_copysign(1, c[i]);
        c[i] += __builtin_powi(c[i], (int)a[i]);
    }
}
