/* problem: spmm rows=24 cols=32 width=10 nnz=200 matrix=block formats=bcsr(2,2); tags: reassociated; shows: blocks of two by two, two terms at a time */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals,
          const int32_t *restrict A_bcsr2_pos, const int32_t *restrict A_bcsr2_crd,
          const float *restrict A_bcsr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < width; k++)
            C[i * width + k] = 0;
        for (int64_t p = A_bcsr2_pos[i / 2]; p < A_bcsr2_pos[i / 2 + 1]; p++) {
            const float *a = A_bcsr_vals + p * 4 + i % 2 * 2;
            const float *of = B + A_bcsr2_crd[p] * 2 * width;
            for (int64_t k = 0; k < width; k++)
                C[i * width + k] += a[0] * of[k] + a[1] * of[width + k];
        }
    }
}
