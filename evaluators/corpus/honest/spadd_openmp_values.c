/* problem: spadd rows=50 cols=37 nnz=400 formats=csr; flags: -fopenmp; threads: 2; tags: openmp; shows: positions by one thread, rows by several */
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
        C2_pos[i + 1] = C2_pos[i] + length;
    }
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++) {
        int64_t last = C2_pos[i];
        int64_t p = A_csr2_pos[i], q = B_csr2_pos[i];
        while (p < A_csr2_pos[i + 1] || q < B_csr2_pos[i + 1]) {
            int64_t ja = p < A_csr2_pos[i + 1] ? A_csr2_crd[p] : cols;
            int64_t jb = q < B_csr2_pos[i + 1] ? B_csr2_crd[q] : cols;
            float a = ja <= jb ? A_csr_vals[p] : 0, b = jb <= ja ? B_csr_vals[q] : 0;
            C2_crd[last] = (int32_t)(ja < jb ? ja : jb);
            C_vals[last++] = a + b;
            p += ja <= jb;
            q += jb <= ja;
        }
    }
}
