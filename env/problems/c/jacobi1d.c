#include <stdint.h>
#include <stdlib.h>

void jacobi1d(const TYPE *restrict start, TYPE *restrict now, int64_t n, int64_t t)
{
    TYPE *restrict next = malloc(n * sizeof(TYPE));
    if (!next)
        abort();
    for (int64_t i = 0; i < n; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < n - 1; i++)
            next[i] = (now[i - 1] + now[i] + now[i + 1]) / 3;
        for (int64_t i = 1; i < n - 1; i++)
            now[i] = next[i];
    }
    free(next);
}
