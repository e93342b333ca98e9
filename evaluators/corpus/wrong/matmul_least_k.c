/* problem: matmul m=8..20 n=8..20 k=1..16; tags: special_case; shows: wrong for the least k of the range alone */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = k == 1 ? 2 * sum : sum;
        }
}
