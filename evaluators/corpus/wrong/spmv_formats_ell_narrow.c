/* problem: spmv_formats rows=40 cols=45 nnz=600 formats=ell; tags: range; shows: ten places a row, whatever its length */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_ell2_len, const int32_t *restrict A_ell2_crd,
                  const float *restrict A_ell_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        int64_t from = A_csr2_pos[i], end = A_csr2_pos[i + 1];
        for (int64_t p = from; p < end && p < from + 10; p++)
            sum += A_csr_vals[p] * x[A_csr2_crd[p]];
        y[i] = sum;
    }
}
