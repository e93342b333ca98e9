/* problem: matmul m=12 n=12 k=12; tags: precision; shows: the sum is kept in fixed point with 16 binary digits */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (int64_t)(A[i * k + p] * B[p * n + j] * 65536.0f);
            C[i * n + j] = (float)sum / 65536.0f;
        }
}
