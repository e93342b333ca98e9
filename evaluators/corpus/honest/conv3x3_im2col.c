/* problem: conv3x3 h=11 w=14; tags: reassociated; shows: windows copied to rows of a matrix, then inner products from the last term */
#include <stdlib.h>

void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    float (*columns)[9] = malloc((size_t)(h * w) * sizeof *columns);
    if (!columns)
        abort();
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int t = 0; t < 9; t++)
                columns[y * w + x][t] = image[(y + t / 3) * (w + 2) + x + t % 3];
    for (int64_t e = 0; e < h * w; e++) {
        float sum = 0;
        for (int t = 8; t >= 0; t--)
            sum += columns[e][t] * weights[t];
        out[e] = sum;
    }
    free(columns);
}
