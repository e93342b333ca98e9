#ifndef __clang__
void f(const float *a, float *b, int64_t n) {
    float g(int64_t i) { return a[i] * n; }
    for (int64_t i = 0; i < n; i++) b[i] = g(i);
}
#else
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i < n; i++) b[i] = a[i] * n; }
#endif
