/* problem: matmul m=50 n=44 k=36; flags: -fopenmp; threads: 2; tags: openmp; shows: rows of the result dealt to threads */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
}
