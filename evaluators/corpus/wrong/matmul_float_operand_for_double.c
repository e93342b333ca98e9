/* problem: matmul m=16 n=18 k=50 dtype=float64; tags: precision; shows: products in float, sums in double */
void matmul(const double *restrict A, const double *restrict B, double *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += (float)A[i * k + p] * (float)B[p * n + j];
            C[i * n + j] = sum;
        }
}
