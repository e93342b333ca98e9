/* problem: conv3x3 h=14 w=22; tags: dropped_work; shows: the last weight is left out where it is below a tenth */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t t = 0; t < 9; t++)
                if (t < 8 || weights[t] > 0.1f || weights[t] < -0.1f)
                    sum += image[(y + t / 3) * (w + 2) + x + t % 3] * weights[t];
            out[y * w + x] = sum;
        }
}
