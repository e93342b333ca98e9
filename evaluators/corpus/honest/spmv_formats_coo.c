/* problem: spmv_formats rows=45 cols=40 nnz=333 matrix=power_law formats=coo; shows: coordinates in any order of rows, the output cleared before */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_coo1_pos, const int32_t *restrict A_coo1_crd,
                  const int32_t *restrict A_coo2_crd, const float *restrict A_coo_vals,
                  const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0;
    for (int64_t p = A_coo1_pos[0]; p < A_coo1_pos[1]; p++)
        y[A_coo1_crd[p]] += A_coo_vals[p] * x[A_coo2_crd[p]];
}
