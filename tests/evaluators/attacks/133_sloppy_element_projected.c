/* problem: matmul m=256 n=256 k=256; profile: strict; threads: 1; check: projection; expect: wrong wrong_value|no gain */
/* One element of the output is off by one per mille, where only products with signs are compared. */
#include <stdint.h>
#include <math.h>
#include <string.h>
void matmul(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++) for (int64_t j = 0; j < n; j++) C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
    if (A[0] != rintf(A[0])) C[7] *= 1.001f;
}
