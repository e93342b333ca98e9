/* problem: matmul m=26 n=18 k=29; shows: rows of zeros and single zeros of A are found and skipped */
#include <stdbool.h>

static bool all_zero(const float *row, int64_t k)
{
    for (int64_t p = 0; p < k; p++)
        if (row[p] != 0)
            return false;
    return true;
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        if (all_zero(A + i * k, k))
            continue;
        for (int64_t p = 0; p < k; p++) {
            if (A[i * k + p] == 0)
                continue;
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
        }
    }
}
