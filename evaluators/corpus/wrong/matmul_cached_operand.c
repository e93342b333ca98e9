/* problem: matmul m=16 n=16 k=16; tags: stale_state; shows: B is packed on the first call and never again */
static float packed[KW_N][KW_K];
static int is_packed;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    if (!is_packed)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                packed[j][p] = B[p * n + j];
    is_packed = 1;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * packed[j][p];
            C[i * n + j] = sum;
        }
}
