/* problem: matmul m=16 n=16 k=20; threads: 2; tags: race; shows: one accumulator for both threads */
#include <omp.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static volatile float sum;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        for (int64_t i = me; i < m / 2 * 2; i += 2)
            for (int64_t j = 0; j < n; j++) {
                float mine = 0;
                for (int64_t p = 0; p < k; p++)
                    mine += A[i * k + p] * B[p * n + j];
#pragma omp barrier
                sum = mine;
#pragma omp barrier
                C[i * n + j] = sum;
            }
    }
}
