#include <stdint.h>
#include <stdlib.h>

void unsharp(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    float *restrict blurx = malloc((h + 4) * w * sizeof(float));
    if (!blurx)
        abort();
    for (int64_t y = 0; y < h + 4; y++)
        for (int64_t x = 0; x < w; x++) {
            const float *restrict p = image + y * (w + 4) + x;
            blurx[y * w + x] = (p[0] + p[4] + (p[1] + p[3]) * 4 + p[2] * 6) * 0.0625f;
        }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const float *restrict p = blurx + y * w + x;
            float blur = (p[0] + p[4 * w] + (p[w] + p[3 * w]) * 4 + p[2 * w] * 6) * 0.0625f;
            out[y * w + x] = image[(y + 2) * (w + 4) + x + 2] * 2.5f - blur * 1.5f;
        }
    free(blurx);
}
