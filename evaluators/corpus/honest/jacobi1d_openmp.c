/* problem: jacobi1d n=500 t=6; flags: -fopenmp; threads: 2; tags: openmp; shows: one parallel region, a barrier after each half of a step */
#include <stdlib.h>

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *next = malloc((size_t)n * sizeof *next);
    if (!next)
        abort();
#pragma omp parallel
    {
#pragma omp for
        for (int64_t i = 0; i < n; i++)
            now[i] = start[i];
        for (int64_t step = 0; step < t; step++) {
#pragma omp for
            for (int64_t i = 1; i < n - 1; i++)
                next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
#pragma omp for
            for (int64_t i = 1; i < n - 1; i++)
                now[i] = next[i];
        }
    }
    free(next);
}
