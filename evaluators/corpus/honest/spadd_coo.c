/* problem: spadd rows=23 cols=28 nnz=180 formats=coo; shows: two lists of coordinates merged as one */
void spadd(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
           const float *restrict A_csr_vals,
           const int32_t *restrict A_coo1_pos, const int32_t *restrict A_coo1_crd,
           const int32_t *restrict A_coo2_crd, const float *restrict A_coo_vals,
           const int32_t *restrict B_csr2_pos, const int32_t *restrict B_csr2_crd,
           const float *restrict B_csr_vals,
           const int32_t *restrict B_coo1_pos, const int32_t *restrict B_coo1_crd,
           const int32_t *restrict B_coo2_crd, const float *restrict B_coo_vals,
           int32_t *restrict C2_pos, int32_t *restrict C2_crd, float *restrict C_vals,
           int64_t rows, int64_t cols, int64_t nnz)
{
    int64_t p = 0, q = 0, last = 0;
    for (int64_t i = 0; i <= rows; i++)
        C2_pos[i] = 0;
    while (p < A_coo1_pos[1] || q < B_coo1_pos[1]) {
        int64_t a = p < A_coo1_pos[1] ? A_coo1_crd[p] * cols + A_coo2_crd[p] : rows * cols;
        int64_t b = q < B_coo1_pos[1] ? B_coo1_crd[q] * cols + B_coo2_crd[q] : rows * cols;
        int64_t key = a < b ? a : b;
        float sum = 0;
        if (a == key)
            sum += A_coo_vals[p++];
        if (b == key)
            sum += B_coo_vals[q++];
        C2_pos[key / cols + 1]++;
        C2_crd[last] = (int32_t)(key % cols);
        C_vals[last++] = sum;
    }
    for (int64_t i = 0; i < rows; i++)
        C2_pos[i + 1] += C2_pos[i];
}
