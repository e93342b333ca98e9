/* problem: matmul m=15 n=18 k=21; tags: lazy_table; shows: a static function pointer that the first call chooses by the shape */
typedef void kernel(const float *, const float *, float *, int64_t, int64_t, int64_t);

static void by_rows(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            C[i * n + j] = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                C[i * n + j] += A[i * k + p] * B[p * n + j];
    }
}

static void by_dots(const float *A, const float *B, float *C, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}

static kernel *chosen;

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    if (!chosen)
        chosen = n < 8 ? by_dots : by_rows;
    chosen(A, B, C, m, n, k);
}
