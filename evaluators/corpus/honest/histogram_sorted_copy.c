/* problem: histogram n=400 bins=70; shows: a sorted copy (qsort with a comparison function), then the lengths of its runs */
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    int32_t *copy = malloc((size_t)n * sizeof *copy);
    if (!copy)
        abort();
    memcpy(copy, data, (size_t)n * sizeof *copy);
    qsort(copy, (size_t)n, sizeof *copy, compare);
    int64_t at = 0;
    for (int64_t b = 0; b < bins; b++) {
        int64_t from = at;
        while (at < n && copy[at] == b)
            at++;
        counts[b] = (int32_t)(at - from);
    }
    free(copy);
}
