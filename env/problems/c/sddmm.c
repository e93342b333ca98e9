#include <stdint.h>

void sddmm(ARGUMENTS
    int64_t rows, int64_t cols, int64_t depth, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
            TYPE sum = 0;
            for (int64_t k = 0; k < depth; k++)
                sum += B[i * depth + k] * C[A_csr2_crd[p] * depth + k];
            S_vals[p] = A_csr_vals[p] * sum;
        }
}
