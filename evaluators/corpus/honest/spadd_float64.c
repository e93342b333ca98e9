/* problem: spadd rows=22 cols=41 nnz=210 dtype=float64 matrix=power_law formats=csr; shows: a merge of the rows, without branches */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const double *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const double *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, double *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int32_t last = 0;
    C2_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            double a = ja <= jb ? A_csr_vals[p] : 0, b = jb <= ja ? B_csr_vals[q] : 0;
            C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
            C_vals[last++] = a + b;
            p += ja <= jb;
            q += jb <= ja;
        }
        C2_pos[i + 1] = last;
    }
}
