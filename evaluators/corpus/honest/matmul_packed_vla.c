/* problem: matmul m=10..30 n=9..33 k=5..40; shows: B transposed into a variable-length array, extents in ranges */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    float columns[n][k];
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++)
            columns[j][p] = B[p * n + j];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * columns[j][p];
            C[i * n + j] = sum;
        }
}
