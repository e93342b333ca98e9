/* problem: matmul m=32 n=64 k=48; shows: prefetch of the next rows of B */
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        float *restrict row = C + i * n;
        for (int64_t j = 0; j < n; j++)
            row[j] = A[i * k] * B[j];
        for (int64_t p = 1; p < k; p++) {
            if (p + 2 < k)
                for (int64_t j = 0; j < n; j += 16)
                    __builtin_prefetch(B + (p + 2) * n + j, 0, 3);
            const float a = A[i * k + p];
            for (int64_t j = 0; j < n; j++)
                row[j] += a * B[p * n + j];
        }
    }
}
