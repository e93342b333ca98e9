/* problem: matmul m=14 n=22 k=31; shows: fmaf of the C library, from the last term to the first */
#include <math.h>

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = k - 1; p >= 0; p--)
                sum = fmaf(A[i * k + p], B[p * n + j], sum);
            C[i * n + j] = sum;
        }
}
