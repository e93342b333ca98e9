/* problem: spadd rows=31 cols=29 nnz=260 formats=csr; tags: order; shows: what is in B alone comes behind the elements of A */
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
        int32_t of_a = last;
        for (int64_t q = B_csr2_pos[i]; q < B_csr2_pos[i + 1]; q++) {
            int32_t at = first;
            while (at < of_a && C2_crd[at] != B_csr2_crd[q])
                at++;
            if (at < of_a) {
                C_vals[at] += B_csr_vals[q];
            } else {
                C2_crd[last] = B_csr2_crd[q];
                C_vals[last++] = B_csr_vals[q];
            }
        }
        C2_pos[i + 1] = last;
    }
}
