#include <assert.h>
void f(const float *a, float *b, int64_t n) { assert(n > 0 && a && b); b[0] = a[n - 1]; }
