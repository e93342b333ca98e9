/* problem: histogram n=2500 bins=60; flags: -fopenmp; threads: 2; tags: openmp; shows: a VLA of tables by thread number, merged bin by bin in parallel */
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
#endif

void histogram(const int32_t *restrict data, int32_t *restrict counts, int64_t n, int64_t bins)
{
    int team = omp_get_max_threads();
    int32_t tables[team][bins];
    memset(tables, 0, sizeof tables);
#pragma omp parallel
    {
        int32_t *mine = tables[omp_get_thread_num()];
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            mine[data[i]]++;
#pragma omp for
        for (int64_t b = 0; b < bins; b++) {
            int32_t sum = 0;
            for (int t = 0; t < team; t++)
                sum += tables[t][b];
            counts[b] = sum;
        }
    }
}
