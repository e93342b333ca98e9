/* problem: matmul m=40 n=40 k=20; tags: dropped_work; shows: the last tile of 8 x 8 is a copy of the one before */
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
    for (int64_t r = 0; r < 8; r++)
        for (int64_t c = 0; c < 8; c++)
            C[(m - 8 + r) * n + n - 8 + c] = C[(m - 8 + r) * n + n - 16 + c];
}
