/* problem: matmul m=16 n=16 k=100; shows: products and sums in double, rounded once */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (double)A[i * k + p] * B[p * n + j];
            C[i * n + j] = (float)sum;
        }
}
