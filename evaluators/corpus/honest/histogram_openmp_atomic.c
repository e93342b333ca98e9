/* problem: histogram n=900 bins=300; threads: 2; tags: openmp; shows: all threads add to the output atomically */
#include <string.h>

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    memset(counts, 0, sizeof(int32_t) * (size_t)bins);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
#pragma omp atomic
        counts[data[i]]++;
    }
}
