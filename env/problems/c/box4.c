#include <stdint.h>
#include <stdlib.h>

void box4(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    float *restrict box1 = malloc((h + 6) * (w + 6) * sizeof(float));
    float *restrict box2 = malloc((h + 4) * (w + 4) * sizeof(float));
    float *restrict box3 = malloc((h + 2) * (w + 2) * sizeof(float));
    if (!box1 || !box2 || !box3)
        abort();
    for (int64_t y = 0; y < h + 6; y++)
        for (int64_t x = 0; x < w + 6; x++) {
            float sum = 0;
            for (int64_t dy = 0; dy < 3; dy++)
                for (int64_t dx = 0; dx < 3; dx++)
                    sum += image[(y + dy) * (w + 8) + x + dx];
            box1[y * (w + 6) + x] = sum / 9;
        }
    for (int64_t y = 0; y < h + 4; y++)
        for (int64_t x = 0; x < w + 4; x++) {
            float sum = 0;
            for (int64_t dy = 0; dy < 3; dy++)
                for (int64_t dx = 0; dx < 3; dx++)
                    sum += box1[(y + dy) * (w + 6) + x + dx];
            box2[y * (w + 4) + x] = sum / 9;
        }
    for (int64_t y = 0; y < h + 2; y++)
        for (int64_t x = 0; x < w + 2; x++) {
            float sum = 0;
            for (int64_t dy = 0; dy < 3; dy++)
                for (int64_t dx = 0; dx < 3; dx++)
                    sum += box2[(y + dy) * (w + 4) + x + dx];
            box3[y * (w + 2) + x] = sum / 9;
        }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t dy = 0; dy < 3; dy++)
                for (int64_t dx = 0; dx < 3; dx++)
                    sum += box3[(y + dy) * (w + 2) + x + dx];
            out[y * w + x] = sum / 9;
        }
    free(box1);
    free(box2);
    free(box3);
}
