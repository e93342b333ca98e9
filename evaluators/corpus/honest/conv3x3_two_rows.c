/* problem: conv3x3 h=21 w=25; shows: two rows of the output at once share their rows of the image, an odd row is done apart */
static void one(const float *in, const float *k, float *out, int64_t w)
{
    for (int64_t x = 0; x < w; x++) {
        float sum = 0;
        for (int t = 0; t < 9; t++)
            sum += k[t] * in[t / 3 * (w + 2) + x + t % 3];
        out[x] = sum;
    }
}

void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    int64_t y = 0;
    for (; y + 1 < h; y += 2)
        for (int64_t x = 0; x < w; x++) {
            float upper = 0, lower = 0;
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 3; c++) {
                    float pixel = image[(y + r) * (w + 2) + x + c];
                    if (r < 3)
                        upper += pixel * weights[r * 3 + c];
                    if (r > 0)
                        lower += pixel * weights[(r - 1) * 3 + c];
                }
            out[y * w + x] = upper;
            out[(y + 1) * w + x] = lower;
        }
    if (y < h)
        one(image + y * (w + 2), weights, out + y * w, w);
}
