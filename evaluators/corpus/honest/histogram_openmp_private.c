/* problem: histogram n=3000 bins=40; flags: -fopenmp; threads: 2; tags: openmp; shows: a table for each thread, merged in a critical section */
void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
#pragma omp parallel num_threads(2)
    {
        int32_t mine[KW_BINS] = {0};
#pragma omp for nowait
        for (int64_t i = 0; i < n; i++)
            mine[data[i]]++;
#pragma omp critical
        for (int64_t b = 0; b < bins; b++)
            counts[b] += mine[b];
    }
}
