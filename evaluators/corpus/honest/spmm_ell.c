/* problem: spmm rows=30 cols=20 width=11 nnz=180 matrix=uniform_rows formats=ell; shows: rows of one width, as far as they are in use */
enum { PLACES = 7 };

void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals,
          const int32_t *restrict A_ell2_len, const int32_t *restrict A_ell2_crd,
          const float *restrict A_ell_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k++) {
            float sum = 0;
            for (int64_t p = i * PLACES; p < i * PLACES + A_ell2_len[i]; p++)
                sum += A_ell_vals[p] * B[A_ell2_crd[p] * width + k];
            C[i * width + k] = sum;
        }
}
