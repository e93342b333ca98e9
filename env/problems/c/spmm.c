#include <stdint.h>

void spmm(ARGUMENTS
    int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < width; k++)
            C[i * width + k] = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            for (int64_t k = 0; k < width; k++)
                C[i * width + k] += A_csr_vals[p] * B[A_csr2_crd[p] * width + k];
    }
}
