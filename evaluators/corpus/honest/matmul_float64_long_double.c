/* problem: matmul m=13 n=11 k=90 dtype=float64; shows: long double accumulators, rounded once */
void matmul(const double *restrict A, const double *restrict B, double *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0.0L;
            for (int64_t p = 0; p < k; p++)
                sum += (long double)A[i * k + p] * B[p * n + j];
            C[i * n + j] = (double)sum;
        }
}
