/* problem: matmul m=22 n=27 k=34; shows: micro-kernels for 1 to 4 rows, called through a table of function pointers */
typedef void kernel(const float *A, const float *B, float *C, int64_t n, int64_t k);

#define KERNEL(ROWS)                                                                              \
    static void rows_##ROWS(const float *A, const float *B, float *C, int64_t n, int64_t k)      \
    {                                                                                             \
        for (int64_t j = 0; j < n; j++) {                                                         \
            float acc[ROWS] = {0};                                                                \
            for (int64_t p = 0; p < k; p++)                                                       \
                for (int r = 0; r < ROWS; r++)                                                    \
                    acc[r] += A[r * k + p] * B[p * n + j];                                        \
            for (int r = 0; r < ROWS; r++)                                                        \
                C[r * n + j] = acc[r];                                                            \
        }                                                                                         \
    }
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)

static kernel *const kernels[] = {0, rows_1, rows_2, rows_3, rows_4};

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i += 4) {
        int64_t rows = m - i < 4 ? m - i : 4;
        kernels[rows](A + i * k, B, C + i * n, n, k);
    }
}
