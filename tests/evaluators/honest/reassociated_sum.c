void f(const float *a, float *b, int64_t n) {
    float s[8] = {0}; for (int64_t i = 0; i + 8 <= n; i += 8) for (int j = 0; j < 8; j++) s[j] += a[i + j];
    for (int64_t i = n / 8 * 8; i < n; i++) s[0] += a[i];
    b[0] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}
