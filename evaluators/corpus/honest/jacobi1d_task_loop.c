/* problem: jacobi1d n=300 t=5; flags: -fopenmp; threads: 2; tags: openmp; shows: chunks of every step as tasks of one thread */
#include <stdlib.h>

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *memory = NULL;
    if (posix_memalign((void **)&memory, 64, (size_t)n * sizeof(float)))
        abort();
    float *from = now, *to = memory;
    for (int64_t i = 0; i < n; i++)
        from[i] = to[i] = start[i];
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int64_t step = 0; step < t; step++) {
#pragma omp taskloop grainsize(64)
        for (int64_t i = 1; i < n - 1; i++)
            to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
        float *swap = from;
        from = to;
        to = swap;
    }
    if (from != now)
        for (int64_t i = 0; i < n; i++)
            now[i] = from[i];
    free(memory);
}
