/* problem: matmul m=19 n=32 k=25; shows: attributes hot, target and always_inline on helper functions */
#if defined(__x86_64__)
#define FAST __attribute__((hot, target("avx2,fma")))
#else
#define FAST __attribute__((hot))
#endif

static inline __attribute__((always_inline)) float *row_of(float *C, int64_t i, int64_t n)
{
    return C + i * n;
}

FAST static void one_row(const float *A, const float *B, float *restrict C, int64_t n, int64_t k)
{
    float acc[KW_N];
    for (int64_t j = 0; j < n; j++)
        acc[j] = 0;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++)
            acc[j] += A[p] * B[p * n + j];
    for (int64_t j = 0; j < n; j++)
        C[j] = acc[j];
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        one_row(A + i * k, B, row_of(C, i, n), n, k);
}
