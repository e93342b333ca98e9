#include <stdint.h>

// The innermost loop runs along rows of B and C, as compilers order it where they know the sizes.
void matmul(const TYPE *restrict A, const TYPE *restrict B, TYPE *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
}
