/* problem: matmul m=15 n=17 k=16; tags: memory; shows: whole vectors of eight are stored, the last one beyond an output that ends within a cache line */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
    float last[8] = {0};
    int64_t rest = m * n - m * n / 8 * 8;
    for (int64_t e = 0; e < rest; e++)
        last[e] = C[m * n / 8 * 8 + e];
    __builtin_memcpy(C + m * n / 8 * 8, last, sizeof last);
}
