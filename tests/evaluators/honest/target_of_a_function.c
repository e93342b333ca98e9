#ifdef __x86_64__
__attribute__((target("avx2"))) static float dot(const float *a, int64_t n) { float s = 0; for (int64_t i = 0; i < n; i++) s += a[i]; return s; }
#else
static float dot(const float *a, int64_t n) { float s = 0; for (int64_t i = 0; i < n; i++) s += a[i]; return s; }
#endif
void f(const float *a, float *b, int64_t n) { b[0] = dot(a, n); }
