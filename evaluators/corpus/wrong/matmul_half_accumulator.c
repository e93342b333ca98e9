/* problem: matmul m=16 n=16 k=64; tags: precision; shows: the sum is rounded to half precision after every 16 terms */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++) {
                sum += A[i * k + p] * B[p * n + j];
                if (p % 16 == 15)
                    sum = half(sum);
            }
            C[i * n + j] = sum;
        }
}
