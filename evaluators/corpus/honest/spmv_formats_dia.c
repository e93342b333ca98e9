/* problem: spmv_formats rows=43 cols=38 nnz=310 matrix=banded formats=dia; shows: diagonal by diagonal within the matrix */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_dia1_pos, const int32_t *restrict A_dia1_crd,
                  const float *restrict A_dia_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0;
    for (int64_t d = A_dia1_pos[0]; d < A_dia1_pos[1]; d++) {
        int64_t shift = A_dia1_crd[d] - (rows - 1);
        int64_t first = shift < 0 ? -shift : 0;
        int64_t last = cols - shift < rows ? cols - shift : rows;
        for (int64_t i = first; i < last; i++)
            y[i] += A_dia_vals[d * rows + i] * x[i + shift];
    }
}
