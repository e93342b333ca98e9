#include <stdint.h>

void mttkrp(ARGUMENTS
    int64_t rows, int64_t cols, int64_t depth, int64_t rank, int64_t nnz)
{
    for (int64_t n = 0; n < rows * rank; n++)
        M[n] = 0;
    for (int64_t a = T_csf1_pos[0]; a < T_csf1_pos[1]; a++)
        for (int64_t b = T_csf2_pos[a]; b < T_csf2_pos[a + 1]; b++)
            for (int64_t p = T_csf3_pos[b]; p < T_csf3_pos[b + 1]; p++) {
                int64_t i = T_csf1_crd[a], j = T_csf2_crd[b], k = T_csf3_crd[p];
                for (int64_t r = 0; r < rank; r++)
                    M[i * rank + r] += T_csf_vals[p] * B[j * rank + r] * C[k * rank + r];
            }
}
