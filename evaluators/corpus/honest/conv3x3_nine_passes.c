/* problem: conv3x3 h=17 w=31; shows: the output is cleared, then each weight adds a shifted image */
#include <string.h>

void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    memset(out, 0, sizeof(float) * (size_t)h * (size_t)w);
    for (int64_t t = 0; t < 9; t++) {
        const float *shifted = image + t / 3 * (w + 2) + t % 3;
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                out[y * w + x] += weights[t] * shifted[y * (w + 2) + x];
    }
}
