#include <stdint.h>

void spmv_formats(ARGUMENTS
    int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        TYPE sum = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            sum += A_csr_vals[p] * x[A_csr2_crd[p]];
        y[i] = sum;
    }
}
