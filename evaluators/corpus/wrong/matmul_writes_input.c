/* problem: matmul m=16 n=16 k=16; tags: memory; shows: an input is scaled in place and left so */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float *a = (float *)A;
    for (int64_t e = 0; e < m * k; e++)
        a[e] *= 2;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum / 2;
        }
}
