/* problem: spmm rows=26 cols=22 width=5 nnz=140 formats=coo; shows: coordinates, the result cleared before */
#include <string.h>

void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals,
          const int32_t *restrict A_coo1_pos, const int32_t *restrict A_coo1_crd,
          const int32_t *restrict A_coo2_crd, const float *restrict A_coo_vals,
          const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    memset(C, 0, (size_t)(rows * width) * sizeof *C);
    for (int64_t p = A_coo1_pos[0]; p < A_coo1_pos[1]; p++)
        for (int64_t k = 0; k < width; k++)
            C[A_coo1_crd[p] * width + k] += A_coo_vals[p] * B[A_coo2_crd[p] * width + k];
}
