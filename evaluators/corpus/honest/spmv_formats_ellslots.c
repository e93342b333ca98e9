/* problem: spmv_formats rows=41 cols=45 nnz=615 matrix=uniform_rows formats=ellslots; shows: place by place over all rows, as many as a row has */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_ellslots2_len, const int32_t *restrict A_ellslots2_crd,
                  const float *restrict A_ellslots_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    int32_t longest = 0;
    for (int64_t i = 0; i < rows; i++) {
        longest = A_ellslots2_len[i] > longest ? A_ellslots2_len[i] : longest;
        y[i] = 0;
    }
    for (int64_t k = 0; k < longest; k++)
        for (int64_t i = 0; i < rows; i++)
            y[i] += A_ellslots_vals[k * rows + i] * x[A_ellslots2_crd[k * rows + i]];
}
