/* problem: spmv_formats rows=30 cols=32 nnz=450 formats=dense; tags: reassociated; shows: the dense copy, eight sums a row */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const float *restrict A_dense, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sums[8] = {0};
        for (int64_t j = 0; j < cols; j++)
            sums[j % 8] += A_dense[i * cols + j] * x[j];
        float sum = 0;
        for (int k = 0; k < 8; k++)
            sum += sums[k];
        y[i] = sum;
    }
}
