/* problem: spmv_formats rows=40 cols=45 nnz=600 matrix=uniform_rows formats=ell; shows: rows of one width, padding too, whose values are zero */
enum { WIDTH = 16 };

void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_ell2_len, const int32_t *restrict A_ell2_crd,
                  const float *restrict A_ell_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t k = 0; k < WIDTH; k++)
            sum += A_ell_vals[i * WIDTH + k] * x[A_ell2_crd[i * WIDTH + k]];
        y[i] = sum;
    }
}
