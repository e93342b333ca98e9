#include <stdlib.h>
void f(const float *a, float *b, int64_t n) {
    float *s = aligned_alloc(64, (n * 4 + 63) / 64 * 64), *t = calloc(n, 4), *u = 0;
    if (!s || !t || posix_memalign((void **)&u, 64, n * 4)) abort();
    for (int64_t i = 0; i < n; i++) s[i] = t[i] = u[i] = a[i];
    s = realloc(s, 2 * n * 4);
    for (int64_t i = 0; i < n; i++) b[i] = s[i] + t[i] + u[i];
    free(s); free(t); free(u);
}
