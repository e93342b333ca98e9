#include <stdlib.h>
#include <string.h>
static int order(const void *x, const void *y) { return *(const int *)x - *(const int *)y; }
void f(const int *a, int *b, int64_t n) {
    memcpy(b, a, n * sizeof *b); qsort(b, n, sizeof *b, order);
    if (bsearch(&a[0], b, n, sizeof *b, order) == 0) abort();
}
