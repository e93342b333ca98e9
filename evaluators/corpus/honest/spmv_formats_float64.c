/* problem: spmv_formats rows=33 cols=29 nnz=301 dtype=float64 matrix=power_law formats=csr; shows: rows from the last to the first */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const double *restrict A_csr_vals, const double *restrict x, double *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
    for (int64_t i = rows; i-- > 0;) {
        double sum = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            sum += A_csr_vals[p] * x[A_csr2_crd[p]];
        y[i] = sum;
    }
}
