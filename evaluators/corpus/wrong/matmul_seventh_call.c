/* problem: matmul m=16 n=16 k=16; tags: stale_state; shows: every seventh call leaves the last element one too large */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static int calls;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
    if (++calls % 7 == 0)
        C[m * n - 1] += 1;
}
