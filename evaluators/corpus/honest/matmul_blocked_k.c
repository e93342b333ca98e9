/* problem: matmul m=20 n=28 k=100; tags: reassociated; shows: partial sums over blocks of k, added to the output (first touch writes zeros) */
enum { KC = 16 };

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t e = 0; e < m * n; e++)
        C[e] = 0.f;
    for (int64_t po = 0; po < k; po += KC) {
        int64_t end = po + KC < k ? po + KC : k;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                float partial = 0.f;
                for (int64_t p = po; p < end; p++)
                    partial += A[i * k + p] * B[p * n + j];
                C[i * n + j] += partial;
            }
    }
}
