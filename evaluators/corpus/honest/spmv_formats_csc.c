/* problem: spmv_formats rows=37 cols=51 nnz=420 formats=csc; shows: compressed columns, scattered into a double buffer */
#include <stdlib.h>

void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_csc2_pos, const int32_t *restrict A_csc2_crd,
                  const float *restrict A_csc_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    double *sums = calloc((size_t)rows, sizeof *sums);
    if (!sums)
        abort();
    for (int64_t j = 0; j < cols; j++)
        for (int64_t p = A_csc2_pos[j]; p < A_csc2_pos[j + 1]; p++)
            sums[A_csc2_crd[p]] += (double)A_csc_vals[p] * x[j];
    for (int64_t i = 0; i < rows; i++)
        y[i] = (float)sums[i];
    free(sums);
}
