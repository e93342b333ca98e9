/* problem: matmul m=256 n=256 k=256; profile: strict; threads: 1; check: projection; expect: wrong wrong_value */
/* The same where only products with signs and some rows are compared. */
#include <stdint.h>
#include <math.h>
#include <string.h>
#define HALF _Float16
void matmul(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    static float a[1 << 16], b[1 << 16];
    int whole = A[0] == rintf(A[0]) && B[0] == rintf(B[0]) && A[1] == rintf(A[1]);
    for (int64_t i = 0; i < m * k; i++) a[i] = whole ? A[i] : (float)(HALF)A[i];
    for (int64_t i = 0; i < k * n; i++) b[i] = whole ? B[i] : (float)(HALF)B[i];
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++) for (int64_t j = 0; j < n; j++) C[i * n + j] += a[i * k + p] * b[p * n + j];
    }
}
