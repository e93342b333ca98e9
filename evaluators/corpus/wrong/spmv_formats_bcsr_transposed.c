/* problem: spmv_formats rows=40 cols=44 nnz=400 matrix=block formats=bcsr(4,4); tags: order; shows: blocks are read column by column */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_bcsr2_pos, const int32_t *restrict A_bcsr2_crd,
                  const float *restrict A_bcsr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t b = 0; b < rows / 4; b++)
        for (int64_t i = 0; i < 4; i++) {
            float sum = 0;
            for (int64_t p = A_bcsr2_pos[b]; p < A_bcsr2_pos[b + 1]; p++)
                for (int64_t j = 0; j < 4; j++)
                    sum += A_bcsr_vals[p * 16 + j * 4 + i] * x[A_bcsr2_crd[p] * 4 + j];
            y[b * 4 + i] = sum;
        }
}
