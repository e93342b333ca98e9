/* problem: spmm rows=24 cols=31 width=9 nnz=190 dtype=float64 matrix=banded formats=csr; shows: elements of a row from the last to the first */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const double *restrict A_csr_vals, const double *restrict B, double *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < width; k++)
            C[i * width + k] = 0;
        for (int64_t p = A_csr2_pos[i + 1]; p-- > A_csr2_pos[i];)
            for (int64_t k = 0; k < width; k++)
                C[i * width + k] += A_csr_vals[p] * B[A_csr2_crd[p] * width + k];
    }
}
