/* problem: blur h=23 w=30; shows: three blurred rows in a ring on the stack */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    float ring[3][KW_W];
    for (int64_t y = 0; y < h + 2; y++) {
        const float *in = image + y * (w + 2);
        float *row = ring[y % 3];
        for (int64_t x = 0; x < w; x++)
            row[x] = (in[x] + in[x + 1] + in[x + 2]) / 3;
        if (y >= 2)
            for (int64_t x = 0; x < w; x++)
                out[(y - 2) * w + x] =
                    (ring[(y - 2) % 3][x] + ring[(y - 1) % 3][x] + ring[y % 3][x]) / 3;
    }
}
