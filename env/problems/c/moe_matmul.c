#include <stdint.h>

void moe_matmul(ARGUMENTS
    int64_t tokens, int64_t experts, int64_t depth, int64_t width, int64_t block)
{
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t f = 0; f < width; f++)
            y[t * width + f] = 0;
        for (int64_t p = A_bcsr2_pos[t / block]; p < A_bcsr2_pos[t / block + 1]; p++)
            for (int64_t d = 0; d < depth; d++) {
                TYPE activation = A_bcsr_vals[(p * block + t % block) * depth + d];
                for (int64_t f = 0; f < width; f++)
                    y[t * width + f] += activation * W[(A_bcsr2_crd[p] * depth + d) * width + f];
            }
    }
}
