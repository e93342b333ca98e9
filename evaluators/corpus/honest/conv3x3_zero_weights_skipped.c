/* problem: conv3x3 h=13 w=18; shows: weights that are zero cost nothing, a list of the others is made first */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    int64_t offset[9];
    float weight[9];
    int count = 0;
    for (int t = 0; t < 9; t++)
        if (weights[t] != 0) {
            offset[count] = t / 3 * (w + 2) + t % 3;
            weight[count++] = weights[t];
        }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int t = 0; t < count; t++)
                sum += weight[t] * image[y * (w + 2) + x + offset[t]];
            out[y * w + x] = sum;
        }
}
