/* problem: spmm rows=40 cols=28 width=24 nnz=300 formats=csr; shows: eight columns of the result in registers */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < width; k += 8) {
            float tile[8] = {0};
            for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
                for (int64_t n = 0; n < 8; n++)
                    if (k + n < width)
                        tile[n] += A_csr_vals[p] * B[A_csr2_crd[p] * width + k + n];
            for (int64_t n = 0; n < 8 && k + n < width; n++)
                C[i * width + k + n] = tile[n];
        }
}
