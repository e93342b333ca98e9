#include <stdint.h>

void conv2d_nhwc(const float *restrict image, const float *restrict weights, float *restrict out,
                 int64_t images, int64_t channels, int64_t filters, int64_t h, int64_t w)
{
    for (int64_t b = 0; b < images; b++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                for (int64_t f = 0; f < filters; f++) {
                    float sum = 0;
                    for (int64_t dy = 0; dy < 3; dy++)
                        for (int64_t dx = 0; dx < 3; dx++)
                            for (int64_t c = 0; c < channels; c++)
                                sum += image[((b * (h + 2) + y + dy) * (w + 2) + x + dx) * channels
                                             + c]
                                       * weights[((dy * 3 + dx) * channels + c) * filters + f];
                    out[((b * h + y) * w + x) * filters + f] = sum;
                }
}
