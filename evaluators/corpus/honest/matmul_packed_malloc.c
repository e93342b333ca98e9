/* problem: matmul m=31 n=52 k=40; shows: panels of B copied into memory from aligned_alloc, padded with zeros */
#include <stdlib.h>
#define NR 8

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    int64_t panels = (n + NR - 1) / NR;
    size_t bytes = (size_t)(panels * k * NR) * sizeof(float);
    float *packed = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!packed)
        abort();
    for (int64_t q = 0; q < panels; q++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t c = 0; c < NR; c++) {
                int64_t j = q * NR + c;
                packed[(q * k + p) * NR + c] = j < n ? B[p * n + j] : 0.0f;
            }
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < panels; q++) {
            float acc[NR] = {0};
            const float *panel = packed + q * k * NR;
            for (int64_t p = 0; p < k; p++)
                for (int c = 0; c < NR; c++)
                    acc[c] += A[i * k + p] * panel[p * NR + c];
            for (int64_t c = 0; c < NR && q * NR + c < n; c++)
                C[i * n + q * NR + c] = acc[c];
        }
    free(packed);
}
