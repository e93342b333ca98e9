/* problem: jacobi1d n=150 t=9; shows: two heap buffers that swap, copied to the output at the end */
#include <stdlib.h>
#include <string.h>

void jacobi1d(const float *restrict start, float *restrict now, int64_t n, int64_t t)
{
    float *memory = malloc(2 * (size_t)n * sizeof *memory), *from = memory, *to = memory + n;
    if (!memory)
        abort();
    memcpy(from, start, (size_t)n * sizeof *from);
    for (int64_t step = 0; step < t; step++) {
        to[0] = from[0];
        to[n - 1] = from[n - 1];
        for (int64_t i = 1; i < n - 1; i++)
            to[i] = (from[i - 1] + from[i] + from[i + 1]) / 3;
        float *swap = from;
        from = to;
        to = swap;
    }
    memcpy(now, from, (size_t)n * sizeof *from);
    free(memory);
}
