/* problem: spmm rows=23 cols=27 width=6 nnz=150 formats=csc; shows: outer products of columns of A and rows of B */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals,
          const int32_t *restrict A_csc2_pos, const int32_t *restrict A_csc2_crd,
          const float *restrict A_csc_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t n = 0; n < rows * width; n++)
        C[n] = 0;
    for (int64_t j = 0; j < cols; j++)
        for (int64_t p = A_csc2_pos[j]; p < A_csc2_pos[j + 1]; p++)
            for (int64_t k = 0; k < width; k++)
                C[A_csc2_crd[p] * width + k] += A_csc_vals[p] * B[j * width + k];
}
