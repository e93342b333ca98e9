#include <stdint.h>
#include <stdlib.h>

void jacobi2d(const TYPE *restrict start, TYPE *restrict now, int64_t h, int64_t w, int64_t t)
{
    TYPE *restrict next = malloc(h * w * sizeof(TYPE));
    if (!next)
        abort();
    for (int64_t i = 0; i < h * w; i++)
        now[i] = start[i];
    for (int64_t step = 0; step < t; step++) {
        for (int64_t i = 1; i < h - 1; i++)
            for (int64_t j = 1; j < w - 1; j++)
                next[i * w + j] = (now[i * w + j] + now[(i - 1) * w + j] + now[i * w + j - 1]
                                   + now[i * w + j + 1] + now[(i + 1) * w + j]) / 5;
        for (int64_t i = 1; i < h - 1; i++)
            for (int64_t j = 1; j < w - 1; j++)
                now[i * w + j] = next[i * w + j];
    }
    free(next);
}
