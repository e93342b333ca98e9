#include <stdint.h>

void batched_matmul(const TYPE *restrict A, const TYPE *restrict B, TYPE *restrict C,
                    int64_t batch, int64_t m, int64_t n, int64_t k)
{
    for (int64_t q = 0; q < batch; q++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                TYPE sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += A[(q * m + i) * k + p] * B[(q * k + p) * n + j];
                C[(q * m + i) * n + j] = sum;
            }
}
