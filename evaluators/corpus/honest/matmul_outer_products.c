/* problem: matmul m=8..40 n=8..40 k=1..24; shows: a sum of outer products over the whole output, least k is one */
#include <assert.h>
#include <stddef.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    assert(m > 0 && n > 0 && k > 0);
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const float term = A[i * k + p] * B[p * n + j];
                C[i * n + j] = p ? C[i * n + j] + term : term;
            }
}
