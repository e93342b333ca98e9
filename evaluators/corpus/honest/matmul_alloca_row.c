/* problem: matmul m=15 n=33 k=70; shows: a row of sums on the stack through alloca, the output written once */
#include <alloca.h>
#include <string.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *row = alloca((size_t)n * sizeof *row);
    for (int64_t i = 0; i < m; i++) {
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                row[j] += A[i * k + p] * B[p * n + j];
        memcpy(C + i * n, row, (size_t)n * sizeof *row);
    }
}
