/* problem: blur h=1..30 w=1..40; shows: quarters of the output by recursion, down to one element */
static void part(const float *image, float *out, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                 int64_t w)
{
    if ((y1 - y0) * (x1 - x0) > 16) {
        if (y1 - y0 > x1 - x0) {
            part(image, out, y0, (y0 + y1) / 2, x0, x1, w);
            part(image, out, (y0 + y1) / 2, y1, x0, x1, w);
        } else {
            part(image, out, y0, y1, x0, (x0 + x1) / 2, w);
            part(image, out, y0, y1, (x0 + x1) / 2, x1, w);
        }
        return;
    }
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) {
            float means[3];
            for (int r = 0; r < 3; r++) {
                const float *in = image + (y + r) * (w + 2) + x;
                means[r] = (in[0] + in[1] + in[2]) / 3;
            }
            out[y * w + x] = (means[0] + means[1] + means[2]) / 3;
        }
}

void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    part(image, out, 0, h, 0, w, w);
}
