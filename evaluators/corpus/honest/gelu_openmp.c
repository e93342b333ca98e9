/* problem: gelu n=2000; flags: -fopenmp; threads: 2; tags: openmp; shows: sections of the array dealt to threads */
#include <math.h>

static void piece(const float *x, float *y, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        y[i] = x[i] * 0.5f * (erff(x[i] * 0.70710678f) + 1);
}

void gelu(const float *restrict x, float *restrict y, int64_t n)
{
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        piece(x, y, 0, n / 2);
#pragma omp section
        piece(x, y, n / 2, n);
    }
}
