#include <stdlib.h>
static void release(float **p) { free(*p); }
void f(const float *a, float *b, int64_t n) {
    __attribute__((cleanup(release))) float *t = malloc(n * 4);
    if (!t) return;
    for (int64_t i = 0; i < n; i++) t[i] = a[i];
    b[0] = t[n - 1];
}
