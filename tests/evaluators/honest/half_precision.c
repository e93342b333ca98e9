#ifdef __FLT16_MAX__
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i < n; i++) { _Float16 h = a[i]; b[i] = h * (_Float16)0.5f; } }
#else
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i < n; i++) b[i] = a[i]; }
#endif
