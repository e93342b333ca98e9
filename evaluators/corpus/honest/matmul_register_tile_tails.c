/* problem: matmul m=29 n=37 k=19; shows: a register tile whose last rows and columns are done apart */
enum { MR = 3, NR = 16 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void edge(const float *A, const float *B, float *C, int64_t rows, int64_t cols, int64_t n,
                 int64_t k)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[r * k + p] * B[p * n + c];
            C[r * n + c] = sum;
        }
}

static void full(const float *A, const float *B, float *C, int64_t n, int64_t k)
{
    float acc[MR][NR] = {{0}};
    for (int64_t p = 0; p < k; p++)
        for (int r = 0; r < MR; r++)
            for (int c = 0; c < NR; c++)
                acc[r][c] += A[r * k + p] * B[p * n + c];
    for (int r = 0; r < MR; r++)
        for (int c = 0; c < NR; c++)
            C[r * n + c] = acc[r][c];
}

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i += MR)
        for (int64_t j = 0; j < n; j += NR) {
            int64_t rows = least(MR, m - i), cols = least(NR, n - j);
            if (rows == MR && cols == NR)
                full(A + i * k, B + j, C + i * n + j, n, k);
            else
                edge(A + i * k, B + j, C + i * n + j, rows, cols, n, k);
        }
}
