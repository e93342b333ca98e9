/* problem: matmul m=21 n=26 k=35 dtype=float64; shows: double precision, 2 x 4 tile, odd rows apart */
void matmul(const double *restrict A, const double *restrict B, double *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    int64_t i = 0;
    for (; i + 2 <= m; i += 2) {
        int64_t j = 0;
        for (; j + 4 <= n; j += 4) {
            double c[2][4] = {{0}};
            for (int64_t p = 0; p < k; p++)
                for (int q = 0; q < 4; q++) {
                    c[0][q] += A[i * k + p] * B[p * n + j + q];
                    c[1][q] += A[(i + 1) * k + p] * B[p * n + j + q];
                }
            for (int q = 0; q < 4; q++) {
                C[i * n + j + q] = c[0][q];
                C[(i + 1) * n + j + q] = c[1][q];
            }
        }
        for (; j < n; j++)
            for (int r = 0; r < 2; r++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    sum += A[(i + r) * k + p] * B[p * n + j];
                C[(i + r) * n + j] = sum;
            }
    }
    for (; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
}
