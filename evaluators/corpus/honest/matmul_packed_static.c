/* problem: matmul m=24 n=32 k=48; tags: static_scratch; shows: B packed into a static array that every call fills anew */
#define NR 16
static float packed[KW_N / NR][KW_K][NR] __attribute__((aligned(64)));

static void pack(const float *B, int64_t n, int64_t k)
{
    for (int64_t q = 0; q < n / NR; q++)
        for (int64_t p = 0; p < k; p++)
            __builtin_memcpy(packed[q][p], B + p * n + q * NR, sizeof packed[q][p]);
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    pack(B, n, k);
    for (int64_t q = 0; q < n / NR; q++)
        for (int64_t i = 0; i < m; i++) {
            float acc[NR] = {0};
            for (int64_t p = 0; p < k; p++)
                for (int c = 0; c < NR; c++)
                    acc[c] += A[i * k + p] * packed[q][p][c];
            __builtin_memcpy(C + i * n + q * NR, acc, sizeof acc);
        }
}
