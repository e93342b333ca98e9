/* problem: matmul m=45 n=53 k=30; threads: 2; tags: openmp; shows: two loops over tiles collapsed and dealt out dynamically */
#define T 16
#define MIN(a, b) ((a) < (b) ? (a) : (b))

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
#pragma omp parallel for collapse(2) schedule(dynamic) num_threads(2)
    for (int64_t io = 0; io < m; io += T)
        for (int64_t jo = 0; jo < n; jo += T)
            for (int64_t i = io; i < MIN(io + T, m); i++)
                for (int64_t j = jo; j < MIN(jo + T, n); j++) {
                    float sum = 0;
                    for (int64_t p = 0; p < k; p++)
                        sum += A[i * k + p] * B[p * n + j];
                    C[i * n + j] = sum;
                }
}
