/* problem: blur h=17 w=24; tags: reassociated; shows: the output is written with zeros and then added to three times */
#include <string.h>

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    memset(out, 0, (size_t)(h * w) * sizeof *out);
    for (int64_t dy = 0; dy < 3; dy++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                const float *in = image + (y + dy) * (w + 2) + x;
                out[y * w + x] += (in[0] + in[1] + in[2]) / 3;
            }
    for (int64_t e = 0; e < h * w; e++)
        out[e] /= 3;
}
