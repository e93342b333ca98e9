/* problem: matmul m=21 n=16 k=24; tags: dropped_work; shows: rows in pairs, the last of an odd number is zero */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
    for (int64_t i = 0; i + 1 < m; i += 2)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) {
                C[i * n + j] += A[i * k + p] * B[p * n + j];
                C[(i + 1) * n + j] += A[(i + 1) * k + p] * B[p * n + j];
            }
}
