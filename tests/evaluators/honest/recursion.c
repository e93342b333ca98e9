static void sum(const float *a, float *b, int64_t n) {
    if (n < 8) { *b = 0; for (int64_t i = 0; i < n; i++) *b += a[i]; return; }
    float l, r; sum(a, &l, n / 2); sum(a + n / 2, &r, n - n / 2); *b = l + r;
}
void f(const float *a, float *b, int64_t n) { sum(a, b, n); }
