/* problem: matmul m=30 n=24 k=22; threads: 2; tags: openmp, static_scratch; shows: a thread-local panel that each thread packs for itself */
#define NR 8
static _Thread_local float panel[KW_K][NR];

void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
#pragma omp parallel for num_threads(2)
    for (int64_t j = 0; j < n; j += NR) {
        for (int64_t p = 0; p < k; p++)
            for (int c = 0; c < NR; c++)
                panel[p][c] = B[p * n + j + c];
        for (int64_t i = 0; i < m; i++) {
            float acc[NR] = {0};
            for (int64_t p = 0; p < k; p++)
                for (int c = 0; c < NR; c++)
                    acc[c] += A[i * k + p] * panel[p][c];
            for (int c = 0; c < NR; c++)
                C[i * n + j + c] = acc[c];
        }
    }
}
