/* problem: prefix_sum n=1..300 dtype=int32; tags: reassociated; shows: Blelloch's up-sweep and down-sweep in a scratch array of a power of two */
#include <stdlib.h>

void prefix_sum(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{
    int64_t size = 1;
    while (size < n)
        size <<= 1;
    int32_t *tree = calloc((size_t)size, sizeof *tree);
    if (!tree)
        abort();
    for (int64_t i = 0; i < n; i++)
        tree[i] = x[i];
    for (int64_t d = 1; d < size; d <<= 1)
        for (int64_t i = 2 * d - 1; i < size; i += 2 * d)
            tree[i] += tree[i - d];
    tree[size - 1] = 0;
    for (int64_t d = size >> 1; d > 0; d >>= 1)
        for (int64_t i = 2 * d - 1; i < size; i += 2 * d) {
            int32_t left = tree[i - d];
            tree[i - d] = tree[i];
            tree[i] += left;
        }
    for (int64_t i = 0; i < n; i++)
        y[i] = tree[i] + x[i];
    free(tree);
}
