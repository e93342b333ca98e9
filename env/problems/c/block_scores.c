#include <stdint.h>

void block_scores(ARGUMENTS
    int64_t length, int64_t depth, int64_t block, int64_t per_row)
{
    for (int64_t a = 0; a < length / block; a++)
        for (int64_t p = M_bcsr2_pos[a]; p < M_bcsr2_pos[a + 1]; p++)
            for (int64_t i = 0; i < block; i++)
                for (int64_t j = 0; j < block; j++) {
                    const TYPE *query = Q + (a * block + i) * depth;
                    const TYPE *key = K + (M_bcsr2_crd[p] * block + j) * depth;
                    int64_t place = (p * block + i) * block + j;
                    TYPE sum = 0;
                    for (int64_t d = 0; d < depth; d++)
                        sum += query[d] * key[d];
                    S_vals[place] = M_bcsr_vals[place] * sum;
                }
}
