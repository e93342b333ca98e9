/* problem: blur h=16 w=24; tags: stale_state; shows: the first stage is computed in the first call only */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    static float stage[KW_H + 2][KW_W];
    static int done;
    for (int64_t y = 0; y < h + 2 && !done; y++)
        for (int64_t x = 0; x < w; x++)
            stage[y][x] = (image[y * (w + 2) + x] + image[y * (w + 2) + x + 1] +
                           image[y * (w + 2) + x + 2]) / 3;
    done = 1;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = (stage[y][x] + stage[y + 1][x] + stage[y + 2][x]) / 3;
}
