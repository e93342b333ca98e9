#include <stdint.h>

void depthwise(const float *restrict image, const float *restrict weights, float *restrict out,
               int64_t channels, int64_t h, int64_t w)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                float sum = 0;
                for (int64_t dy = 0; dy < 3; dy++)
                    for (int64_t dx = 0; dx < 3; dx++)
                        sum += image[(c * (h + 2) + y + dy) * (w + 2) + x + dx]
                               * weights[(c * 3 + dy) * 3 + dx];
                out[(c * h + y) * w + x] = sum;
            }
}
