/* problem: matmul m=20 n=24 k=40; tags: precision; shows: operands rounded to half precision */
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
            for (int64_t p = 0; p < k; p++)
                sum += half(A[i * k + p]) * half(B[p * n + j]);
            C[i * n + j] = sum;
        }
}
