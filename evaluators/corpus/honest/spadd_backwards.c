/* problem: spadd rows=24 cols=24 nnz=200 matrix=dense_rows formats=csr; shows: from the last row and column to the first, as the number of elements is known */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t last = nnz;
    C2_pos[rows] = (int32_t)nnz;
    for (int64_t i = rows; i-- > 0;) {
        int64_t p = A_csr2_pos[i + 1], q = B_csr2_pos[i + 1];
        while (p > A_csr2_pos[i] || q > B_csr2_pos[i]) {
            int64_t ja = p > A_csr2_pos[i] ? A_csr2_crd[p - 1] : -1;
            int64_t jb = q > B_csr2_pos[i] ? B_csr2_crd[q - 1] : -1;
            float sum = 0;
            if (ja >= jb)
                sum += A_csr_vals[--p];
            if (jb >= ja)
                sum += B_csr_vals[--q];
            last--;
            C2_crd[last] = (int32_t)(ja > jb ? ja : jb);
            C_vals[last] = sum;
        }
        C2_pos[i] = (int32_t)last;
    }
}
