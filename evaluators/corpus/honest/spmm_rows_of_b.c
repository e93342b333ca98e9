/* problem: spmm rows=21 cols=33 width=19 nnz=200 formats=csr; shows: a row of the result at a time, rows of B added to it */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float *row = C + i * width;
        for (int64_t k = 0; k < width; k++)
            row[k] = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
            const float a = A_csr_vals[p], *of = B + A_csr2_crd[p] * width;
            for (int64_t k = 0; k < width; k++)
                row[k] += a * of[k];
        }
    }
}
