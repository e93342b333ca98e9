void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i < n; i++) b[i] = 2 * a[i]; }
