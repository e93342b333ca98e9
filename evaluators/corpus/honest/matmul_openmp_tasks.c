/* problem: matmul m=40 n=24 k=28; threads: 2; tags: openmp; shows: recursion over rows with OpenMP tasks */
static void rows(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    if (m <= 8) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += A[i * k + p] * B[p * n + j];
                C[i * n + j] = sum;
            }
        return;
    }
    int64_t half = m / 2;
#pragma omp task
    rows(A, B, C, half, n, k);
#pragma omp task
    rows(A + half * k, B, C + half * n, m - half, n, k);
#pragma omp taskwait
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    rows(A, B, C, m, n, k);
}
