void f(const int64_t *a, int64_t *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) { int64_t x = a[i]; __asm__("" : "+r"(x)); b[i] = x + 1; }
}
