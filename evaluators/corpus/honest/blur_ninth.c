/* problem: blur h=16 w=28; tags: reassociated; shows: one sum of nine, times a ninth */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t dy = 0; dy < 3; dy++)
                for (int64_t dx = 0; dx < 3; dx++)
                    sum += image[(y + dy) * (w + 2) + x + dx];
            out[y * w + x] = sum * (1.0f / 9.0f);
        }
}
