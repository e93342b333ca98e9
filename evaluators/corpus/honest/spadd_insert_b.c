/* problem: spadd rows=19 cols=25 nnz=130 matrix=block formats=csr; shows: a row of A, into which elements of B are inserted */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int32_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t first = last;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++) {
            C2_crd[last] = A_csr2_crd[p];
            C_vals[last++] = A_csr_vals[p];
        }
        for (int64_t q = B_csr2_pos[i]; q < B_csr2_pos[i + 1]; q++) {
            int32_t at = last;
            while (at > first && C2_crd[at - 1] > B_csr2_crd[q])
                at--;
            if (at > first && C2_crd[at - 1] == B_csr2_crd[q]) {
                C_vals[at - 1] += B_csr_vals[q];
                continue;
            }
            for (int32_t n = last; n > at; n--) {
                C2_crd[n] = C2_crd[n - 1];
                C_vals[n] = C_vals[n - 1];
            }
            C2_crd[at] = B_csr2_crd[q];
            C_vals[at] = B_csr_vals[q];
            last++;
        }
        C2_pos[i + 1] = last;
    }
}
