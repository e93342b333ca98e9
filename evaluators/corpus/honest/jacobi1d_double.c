/* problem: jacobi1d n=64 t=30; shows: the state in double, rounded once at the end, terms from the right */
#include <stdlib.h>

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    double *u = malloc(2 * (size_t)n * sizeof *u), *v = u + n;
    if (!u)
        abort();
    for (int64_t i = 0; i < n; i++)
        u[i] = v[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            v[i] = (u[i + 1] + u[i] + u[i - 1]) / 3;
        for (int64_t i = 1; i < n - 1; i++)
            u[i] = v[i];
    }
    for (int64_t i = 0; i < n; i++)
        now[i] = (float)u[i];
    free(u);
}
