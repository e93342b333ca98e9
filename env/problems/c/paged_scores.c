#include <stdint.h>

void paged_scores(ARGUMENTS
    int64_t pages, int64_t memory, int64_t page, int64_t depth)
{
    for (int64_t b = 0; b < pages; b++)
        for (int64_t t = 0; t < page; t++) {
            const TYPE *key = K + (T_ell2_crd[b] * page + t) * depth;
            TYPE sum = 0;
            for (int64_t d = 0; d < depth; d++)
                sum += key[d] * q[d];
            s[b * page + t] = T_ell_vals[b] * sum;
        }
}
