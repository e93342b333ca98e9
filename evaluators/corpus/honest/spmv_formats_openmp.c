/* problem: spmv_formats rows=80 cols=70 nnz=900 matrix=dense_rows formats=csr; flags: -fopenmp; threads: 2; tags: openmp; shows: rows dealt out one by one */
void spmv_formats(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
                  const float *restrict A_csr_vals, const float *restrict x, float *restrict y,
                  int64_t rows, int64_t cols, int64_t nnz)
{
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
            sum += A_csr_vals[p] * x[A_csr2_crd[p]];
        y[i] = sum;
    }
}
