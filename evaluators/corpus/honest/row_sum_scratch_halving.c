/* problem: row_sum rows=8 cols=256; tags: reassociated; shows: halves added in a scratch buffer until one element is left */
#include <stdlib.h>
#include <string.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    float *scratch = calloc((size_t)cols, sizeof *scratch);
    if (!scratch)
        abort();
    for (int64_t i = 0; i < rows; i++) {
        memcpy(scratch, x + i * cols, (size_t)cols * sizeof *scratch);
        for (int64_t left = cols; left > 1;) {
            int64_t half = (left + 1) / 2;
            for (int64_t j = 0; j + half < left; j++)
                scratch[j] += scratch[j + half];
            left = half;
        }
        y[i] = scratch[0];
    }
    free(scratch);
}
