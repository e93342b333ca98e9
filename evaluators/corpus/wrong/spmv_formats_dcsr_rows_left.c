/* problem: spmv_formats rows=90 cols=30 nnz=120 matrix=empty_rows formats=dcsr; tags: stale_state; shows: rows without elements are left as they were */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_dcsr1_pos, const int32_t *restrict A_dcsr1_crd,
                  const int32_t *restrict A_dcsr2_pos, const int32_t *restrict A_dcsr2_crd,
                  const float *restrict A_dcsr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t r = A_dcsr1_pos[0]; r < A_dcsr1_pos[1]; r++) {
        float sum = 0;
        for (int64_t p = A_dcsr2_pos[r]; p < A_dcsr2_pos[r + 1]; p++)
            sum += A_dcsr_vals[p] * x[A_dcsr2_crd[p]];
        y[A_dcsr1_crd[r]] = sum;
    }
}
