#include <stdint.h>

/* The columns of a row of the result are found in order: the least that is left of all rows of B
   that meet in it, again and again. */
void spgemm(ARGUMENTS
    int64_t rows, int64_t cols, int64_t inner, int64_t nnz, int64_t room)
{
    int64_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t done = -1;;) {
            int64_t least = cols;
            TYPE sum = 0;
            for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
                int64_t k = A_csr2_crd[p];
                for (int64_t q = B_csr2_pos[k]; q < B_csr2_pos[k + 1]; q++) {
                    int64_t j = B_csr2_crd[q];
                    if (j <= done || j > least)
                        continue;
                    sum = (j < least ? 0 : sum) + A_csr_vals[p] * B_csr_vals[q];
                    least = j;
                }
            }
            if (least == cols)
                break;
            C2_crd[last] = (int32_t)least;
            C_vals[last++] = sum;
            done = least;
        }
        C2_pos[i + 1] = (int32_t)last;
    }
    for (; last < room; last++) {
        C2_crd[last] = 0;
        C_vals[last] = 0;
    }
}
