/* problem: conv3x3 h=14 w=22; tags: precision; shows: the image in half precision */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t t = 0; t < 9; t++)
                sum += half(image[(y + t / 3) * (w + 2) + x + t % 3]) * weights[t];
            out[y * w + x] = sum;
        }
}
