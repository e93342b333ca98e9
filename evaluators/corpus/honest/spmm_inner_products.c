/* problem: spmm rows=30 cols=25 width=7 nnz=260 matrix=power_law formats=csr; shows: column by column of B, sums in double */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t k = 0; k < width; k++)
        for (int64_t i = 0; i < rows; i++) {
            double sum = 0;
            for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
                sum += (double)A_csr_vals[p] * B[A_csr2_crd[p] * width + k];
            C[i * width + k] = (float)sum;
        }
}
