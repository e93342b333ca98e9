#include <stdint.h>
#include <stdlib.h>

static inline int64_t inside(int64_t i, int64_t size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

void pyramid(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    int64_t hs[4] = {h}, ws[4] = {w};
    float *level[4], *detail[3];
    float *restrict part = malloc(2 * h * w * sizeof(float));
    float *restrict total = malloc(h * w * sizeof(float));
    if (!part || !total)
        abort();
    for (int64_t n = 0; n < 4; n++) {
        if (n > 0) {
            hs[n] = (hs[n - 1] + 1) / 2;
            ws[n] = (ws[n - 1] + 1) / 2;
        }
        level[n] = malloc(hs[n] * ws[n] * sizeof(float));
        if (!level[n])
            abort();
    }
    for (int64_t i = 0; i < h * w; i++)
        level[0][i] = image[i];
    for (int64_t n = 1; n < 4; n++) {
        int64_t th = hs[n - 1], tw = ws[n - 1];
        for (int64_t y = 0; y < th; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                const float *p = level[n - 1] + y * tw;
                float ends = p[inside(2 * x - 1, tw)] + p[inside(2 * x + 2, tw)];
                float middle = p[inside(2 * x, tw)] + p[inside(2 * x + 1, tw)];
                part[y * ws[n] + x] = (ends + middle * 3) * 0.125f;
            }
        for (int64_t y = 0; y < hs[n]; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                const float *p = part + x;
                float ends = p[inside(2 * y - 1, th) * ws[n]] + p[inside(2 * y + 2, th) * ws[n]];
                float middle = p[inside(2 * y, th) * ws[n]] + p[inside(2 * y + 1, th) * ws[n]];
                level[n][y * ws[n] + x] = (ends + middle * 3) * 0.125f;
            }
    }
    for (int64_t n = 0; n < 3; n++) {
        int64_t th = hs[n + 1], tw = ws[n + 1];
        detail[n] = malloc(hs[n] * ws[n] * sizeof(float));
        if (!detail[n])
            abort();
        for (int64_t y = 0; y < th; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                const float *p = level[n + 1] + y * tw;
                part[y * ws[n] + x] = p[inside(x / 2, tw)] * 0.75f
                                      + p[inside(x / 2 - 1 + 2 * (x % 2), tw)] * 0.25f;
            }
        for (int64_t y = 0; y < hs[n]; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                float near = part[inside(y / 2, th) * ws[n] + x];
                float far = part[inside(y / 2 - 1 + 2 * (y % 2), th) * ws[n] + x];
                float d = level[n][y * ws[n] + x] - (near * 0.75f + far * 0.25f);
                detail[n][y * ws[n] + x] = d * (1 + 1 / (1 + d * d));
            }
    }
    for (int64_t i = 0; i < hs[3] * ws[3]; i++)
        total[i] = level[3][i];
    for (int64_t n = 2; n >= 0; n--) {
        int64_t th = hs[n + 1], tw = ws[n + 1];
        for (int64_t y = 0; y < th; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                const float *p = total + y * tw;
                part[y * ws[n] + x] = p[inside(x / 2, tw)] * 0.75f
                                      + p[inside(x / 2 - 1 + 2 * (x % 2), tw)] * 0.25f;
            }
        for (int64_t y = 0; y < hs[n]; y++)
            for (int64_t x = 0; x < ws[n]; x++) {
                float near = part[inside(y / 2, th) * ws[n] + x];
                float far = part[inside(y / 2 - 1 + 2 * (y % 2), th) * ws[n] + x];
                total[y * ws[n] + x] = detail[n][y * ws[n] + x] + (near * 0.75f + far * 0.25f);
            }
    }
    for (int64_t i = 0; i < h * w; i++)
        out[i] = total[i];
    for (int64_t n = 0; n < 4; n++)
        free(level[n]);
    for (int64_t n = 0; n < 3; n++)
        free(detail[n]);
    free(part);
    free(total);
}
