/* problem: spmm rows=35 cols=30 width=13 nnz=240 matrix=dense_rows formats=csr; flags: -fopenmp; threads: 2; tags: openmp; shows: columns of B dealt out to threads */
void spmm(const int32_t *restrict A_csr2_pos, const int32_t *restrict A_csr2_crd,
          const float *restrict A_csr_vals, const float *restrict B, float *restrict C,
          int64_t rows, int64_t cols, int64_t width, int64_t nnz)
{
#pragma omp parallel for
    for (int64_t k = 0; k < width; k++)
        for (int64_t i = 0; i < rows; i++) {
            float sum = 0;
            for (int64_t p = A_csr2_pos[i]; p < A_csr2_pos[i + 1]; p++)
                sum += A_csr_vals[p] * B[A_csr2_crd[p] * width + k];
            C[i * width + k] = sum;
        }
}
