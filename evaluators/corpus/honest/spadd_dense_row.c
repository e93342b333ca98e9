/* problem: spadd rows=27 cols=33 nnz=240 matrix=banded formats=csr; shows: every row in a dense buffer with marks, gathered column by column */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int32_t last = 0;
    float row[cols];
    char used[cols];
    C2_pos[0] = 0;
    for (int64_t j = 0; j < cols; j++) {
        row[j] = 0;
        used[j] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
            row[A_csr2_crd[p]] = A_csr_vals[p];
            used[A_csr2_crd[p]] = 1;
        }
        for (int64_t q = B_csr2_pos[i]; q < B_csr2_pos[i + 1]; q++) {
            row[B_csr2_crd[q]] += B_csr_vals[q];
            used[B_csr2_crd[q]] = 1;
        }
        for (int64_t j = 0; j < cols; j++)
            if (used[j]) {
                C2_crd[last] = (int32_t)j;
                C_vals[last++] = row[j];
                row[j] = 0;
                used[j] = 0;
            }
        C2_pos[i + 1] = last;
    }
}
