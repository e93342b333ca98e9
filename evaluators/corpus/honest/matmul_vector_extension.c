/* problem: matmul m=20 n=50 k=33; shows: GCC vector types, unaligned loads through memcpy, scalar tail */
#include <string.h>
typedef float v8 __attribute__((vector_size(32)));

static inline v8 load(const float *p) { v8 v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, v8 v) { memcpy(p, &v, sizeof v); }

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    int64_t whole = n / 16 * 16;
    for (int64_t i = 0; i + 1 < m; i += 2)
        for (int64_t j = 0; j < whole; j += 16) {
            v8 c00 = {0}, c01 = {0}, c10 = {0}, c11 = {0};
            for (int64_t p = 0; p < k; p++) {
                v8 b0 = load(B + p * n + j), b1 = load(B + p * n + j + 8);
                float a0 = A[i * k + p], a1 = A[(i + 1) * k + p];
                c00 += a0 * b0;
                c01 += a0 * b1;
                c10 += a1 * b0;
                c11 += a1 * b1;
            }
            store(C + i * n + j, c00);
            store(C + i * n + j + 8, c01);
            store(C + (i + 1) * n + j, c10);
            store(C + (i + 1) * n + j + 8, c11);
        }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = i == m - 1 && m % 2 ? 0 : whole; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}
