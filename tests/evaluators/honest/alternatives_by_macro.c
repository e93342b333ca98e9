void f(const float *a, float *b, int64_t n) {
#if defined(__AVX512F__)
    enum { LANES = 16 };
#elif defined(__AVX2__)
    enum { LANES = 8 };
#else
    enum { LANES = 4 };
#endif
    for (int64_t i = 0; i < n; i++) b[i] = a[i / LANES * LANES];
}
