/* problem: spmv_formats rows=43 cols=38 nnz=310 matrix=banded formats=dia; tags: order; shows: diagonals are counted from the other corner */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_dia1_pos, const int32_t *restrict A_dia1_crd,
                  const float *restrict A_dia_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = 0;
    for (int64_t d = A_dia1_pos[0]; d < A_dia1_pos[1]; d++)
        for (int64_t i = 0; i < rows; i++) {
            int64_t j = i + A_dia1_crd[d] - (cols - 1);
            if (j >= 0 && j < cols)
                y[i] += A_dia_vals[d * rows + i] * x[j];
        }
}
