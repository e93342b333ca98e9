void f(const float *a, float *b, int64_t n) {
    float t[n]; for (int64_t i = 0; i < n; i++) t[i] = a[i];
    for (int64_t i = 0; i < n; i++) b[i] = t[n - 1 - i];
}
