/* problem: conv3x3 h=22 w=19; tags: reassociated; shows: three sums, one for each row of weights, added at the end */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sums[3];
            for (int r = 0; r < 3; r++) {
                const float *in = image + (y + r) * (w + 2) + x;
                sums[r] = in[0] * weights[3 * r] + in[1] * weights[3 * r + 1] +
                          in[2] * weights[3 * r + 2];
            }
            out[y * w + x] = sums[0] + (sums[1] + sums[2]);
        }
}
