/* problem: spmv_formats rows=40 cols=44 nnz=400 matrix=block formats=bcsr(4,4); tags: reassociated; shows: blocks of four by four, four sums at a time, columns outermost */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals,
                  const int32_t *restrict A_bcsr2_pos, const int32_t *restrict A_bcsr2_crd,
                  const float *restrict A_bcsr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t b = 0; b < rows / 4; b++) {
        float sums[4] = {0, 0, 0, 0};
        for (int64_t p = A_bcsr2_pos[b]; p < A_bcsr2_pos[b + 1]; p++)
            for (int64_t j = 0; j < 4; j++)
                for (int64_t i = 0; i < 4; i++)
                    sums[i] += A_bcsr_vals[p * 16 + i * 4 + j] * x[A_bcsr2_crd[p] * 4 + j];
        for (int64_t i = 0; i < 4; i++)
            y[b * 4 + i] = sums[i];
    }
}
