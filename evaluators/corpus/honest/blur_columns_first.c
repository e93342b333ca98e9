/* problem: blur h=18 w=26; tags: reassociated; shows: the stages the other way round, along y first */
#include <stdlib.h>

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    const int64_t s = w + 2;
    float *column = malloc((size_t)s * sizeof *column);
    if (!column)
        abort();
    for (int64_t y = 0; y < h; y++) {
        for (int64_t x = 0; x < s; x++)
            column[x] = (image[y * s + x] + image[(y + 1) * s + x] + image[(y + 2) * s + x]) / 3;
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = (column[x] + column[x + 1] + column[x + 2]) / 3;
    }
    free(column);
}
