/* problem: spadd rows=31 cols=29 nnz=260 formats=csr; tags: special_case; shows: sums that are zero are left out */
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
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            float sum = 0;
            if (ja <= jb)
                sum += A_csr_vals[p++];
            if (jb <= ja)
                sum += B_csr_vals[q++];
            if (sum != 0) {
                C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
                C_vals[last++] = sum;
            }
        }
        C2_pos[i + 1] = last;
    }
}
