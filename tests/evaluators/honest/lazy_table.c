#include <math.h>
static float table[256];
static int ready;
void f(const unsigned char *a, float *b, int64_t n) {
    if (!ready) { for (int i = 0; i < 256; i++) table[i] = sinf(i); ready = 1; }
    for (int64_t i = 0; i < n; i++) b[i] = table[a[i]];
}
