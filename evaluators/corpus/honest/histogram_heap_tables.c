/* problem: histogram n=777 bins=256; shows: two private tables from calloc, merged into the output */
#include <stdlib.h>

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    int32_t *even = calloc(2 * (size_t)bins, sizeof *even), *odd = even + bins;
    if (!even)
        abort();
    for (int64_t i = 0; i < n; i++)
        ++*((i & 1 ? odd : even) + data[i]);
    for (int64_t b = 0; b < bins; b++)
        counts[b] = even[b] + odd[b];
    free(even);
}
