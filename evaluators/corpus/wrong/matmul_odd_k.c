/* problem: matmul m=16 n=16 k=20..41; tags: special_case; shows: pairs of terms, the last of an odd number is dropped */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p + 1 < k; p += 2)
                sum += A[i * k + p] * B[p * n + j] +
                       A[i * k + p + 1] * B[(p + 1) * n + j];
            C[i * n + j] = sum;
        }
}
