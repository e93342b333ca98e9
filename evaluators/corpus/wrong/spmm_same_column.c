/* problem: spmm rows=21 cols=33 width=19 nnz=200 formats=csr; tags: shortcut; shows: the last column is a copy of the one before */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < width; k++)
            C[i * width + k] = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            for (int64_t k = 0; k < width - 1; k++)
                C[i * width + k] += A_csr_vals[p] * B[A_csr2_crd[p] * width + k];
        C[i * width + width - 1] = C[i * width + width - 2];
    }
}
