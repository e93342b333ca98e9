/* problem: histogram n=900 bins=20; threads: 2; tags: race; shows: both threads read the counts before either adds its own */
#include <omp.h>

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    for (int64_t b = 0; b < bins; b++)
        counts[b] = 0;
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        int32_t mine[KW_BINS];
        for (int64_t b = 0; b < bins; b++)
            mine[b] = counts[b];
#pragma omp barrier
        for (int64_t i = me; i < n; i += 2)
            mine[data[i]]++;
        for (int64_t b = 0; b < bins; b++)
            counts[b] = mine[b];
    }
}
