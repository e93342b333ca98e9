/* problem: matmul m=37 n=41 k=53; tags: reassociated; shows: recursion that halves the longest side, Frigo and others 1999 */
static void multiply(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k,
                     int64_t lda, int64_t ldb)
{
    if (m + n + k <= 40) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += A[i * lda + p] * B[p * ldb + j];
                C[i * ldb + j] += sum;
            }
    } else if (m >= n && m >= k) {
        multiply(A, B, C, m / 2, n, k, lda, ldb);
        multiply(A + m / 2 * lda, B, C + m / 2 * ldb, m - m / 2, n, k, lda, ldb);
    } else if (n >= k) {
        multiply(A, B, C, m, n / 2, k, lda, ldb);
        multiply(A, B + n / 2, C + n / 2, m, n - n / 2, k, lda, ldb);
    } else {
        multiply(A, B, C, m, n, k / 2, lda, ldb);
        multiply(A + k / 2, B + k / 2 * ldb, C, m, n, k - k / 2, lda, ldb);
    }
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m * n; i++)
        C[i] = 0;
    multiply(A, B, C, m, n, k, k, n);
}
