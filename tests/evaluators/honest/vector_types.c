typedef float v8 __attribute__((vector_size(32)));
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i + 8 <= n; i += 8) *(v8 *)(b + i) = *(const v8 *)(a + i) * 2.0f; }
