/* problem: matmul m=16 n=16 k=16; tags: stale_state; shows: accumulators are static and cleared only by the loader */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    static float acc[KW_M * KW_N];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            for (int64_t p = 0; p < k; p++)
                acc[i * n + j] += A[i * k + p] * B[p * n + j];
            C[i * n + j] = acc[i * n + j];
        }
}
