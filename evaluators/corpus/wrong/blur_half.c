/* problem: blur h=16 w=24; tags: precision; shows: the first stage is kept in half precision */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t t = 0; t < 9; t++)
                sum += half(image[(y + t / 3) * (w + 2) + x + t % 3]);
            out[y * w + x] = sum / 9;
        }
}
