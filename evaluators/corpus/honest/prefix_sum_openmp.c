/* problem: prefix_sum n=1000; flags: -fopenmp; threads: 2; tags: openmp, reassociated; shows: blocks in parallel, a serial scan of their sums, blocks in parallel */
enum { BLOCK = 128 };

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    const int64_t blocks = (n + BLOCK - 1) / BLOCK;
    float before[blocks + 1];
    before[0] = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp for
        for (int64_t b = 0; b < blocks; b++) {
            float sum = 0;
            for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK && i < n; i++)
                sum += x[i];
            before[b + 1] = sum;
        }
#pragma omp single
        for (int64_t b = 0; b < blocks; b++)
            before[b + 1] += before[b];
#pragma omp for
        for (int64_t b = 0; b < blocks; b++) {
            float sum = before[b];
            for (int64_t i = b * BLOCK; i < (b + 1) * BLOCK && i < n; i++)
                y[i] = sum += x[i];
        }
    }
}
