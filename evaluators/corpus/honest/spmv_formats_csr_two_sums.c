/* problem: spmv_formats rows=40 cols=60 nnz=700 formats=csr; tags: reassociated; shows: compressed rows, two sums */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float even = 0, odd = 0;
        int64_t p = A_csr2_pos[i], end = A_csr2_pos[i + 1];
        for (; p + 2 <= end; p += 2) {
            even += A_csr_vals[p] * x[A_csr2_crd[p]];
            odd += A_csr_vals[p + 1] * x[A_csr2_crd[p + 1]];
        }
        if (p < end)
            even += A_csr_vals[p] * x[A_csr2_crd[p]];
        y[i] = even + odd;
    }
}
