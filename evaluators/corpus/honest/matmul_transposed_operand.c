/* problem: matmul m=19 n=21 k=66; tags: reassociated; shows: B transposed into malloc'ed memory, then four sums side by side */
#include <stdlib.h>

static float dot(const float *a, const float *b, int64_t k)
{
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
        s0 += a[p] * b[p];
        s1 += a[p + 1] * b[p + 1];
        s2 += a[p + 2] * b[p + 2];
        s3 += a[p + 3] * b[p + 3];
    }
    for (; p < k; p++)
        s0 += a[p] * b[p];
    return (s0 + s1) + (s2 + s3);
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *bt = malloc(sizeof(float) * (size_t)(n * k));
    if (bt == NULL)
        abort();
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            bt[j * k + p] = B[p * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = dot(&A[i * k], &bt[j * k], k);
    free(bt);
}
