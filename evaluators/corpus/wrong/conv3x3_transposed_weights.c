/* problem: conv3x3 h=14 w=22; tags: order; shows: the weights are transposed */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t t = 0; t < 9; t++)
                sum += image[(y + t / 3) * (w + 2) + x + t % 3] * weights[t % 3 * 3 + t / 3];
            out[y * w + x] = sum;
        }
}
