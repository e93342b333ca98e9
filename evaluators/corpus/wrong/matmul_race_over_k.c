/* problem: matmul m=8 n=8 k=90; threads: 2; tags: race; shows: threads share the terms of a sum, one part is lost */
#include <omp.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t e = 0; e < m * n; e++)
        C[e] = 0;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float sum = C[i * n + j];
#pragma omp barrier
                for (int64_t p = me; p < k; p += 2)
                    sum += A[i * k + p] * B[p * n + j];
                C[i * n + j] = sum;
#pragma omp barrier
            }
    }
}
