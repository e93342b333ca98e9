#ifdef __SSE2__
#include <immintrin.h>
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i + 4 <= n; i += 4) _mm_stream_ps(b + i, _mm_loadu_ps(a + i)); _mm_sfence(); }
#else
void f(const float *a, float *b, int64_t n) { for (int64_t i = 0; i < n; i++) b[i] = a[i]; }
#endif
