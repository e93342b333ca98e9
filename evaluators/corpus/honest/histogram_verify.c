/* problem: histogram n=730 bins=25; shows: a check of its own that every element was counted, which aborts if not */
#include <stdlib.h>

static void verify(const int32_t *counts, int64_t n, int64_t bins)
{
    int64_t total = 0;
    for (int64_t b = 0; b < bins; b++)
        total += counts[b];
    if (total != n)
        abort();
}

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = bins; b--;)
        counts[b] = 0;
    for (int64_t i = n; i--;)
        ++counts[data[i]];
    verify(counts, n, bins);
}
