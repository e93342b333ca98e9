/* problem: spadd rows=45 cols=20 nnz=150 matrix=empty_rows formats=csr; shows: lengths of rows first, then positions, then elements */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int32_t length = 0;
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            p += ja <= jb;
            q += jb <= ja;
            length++;
        }
        C2_pos[i + 1] = length;
    }
    for (int64_t i = 0; i < rows; i++)
        C2_pos[i + 1] += C2_pos[i];
    for (int64_t i = 0; i < rows; i++) {
        int64_t last = C2_pos[i];
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            float sum = ja < jb ? A_csr_vals[p] : jb < ja ? B_csr_vals[q] : A_csr_vals[p] + B_csr_vals[q];
            C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
            C_vals[last++] = sum;
            p += ja <= jb;
            q += jb <= ja;
        }
    }
}
