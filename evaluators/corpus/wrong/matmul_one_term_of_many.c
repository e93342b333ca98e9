/* problem: matmul m=4 n=4 k=5000; tags: dropped_work; shows: one term in the middle of a long sum is dropped */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                if (p != 2500)
                    sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}
