/* problem: blur h=19 w=33; shows: both stages at once, the nine elements of a window read for each result */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    const int64_t s = w + 2;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const float *p = image + y * s + x;
            float a = (p[0] + p[1] + p[2]) / 3;
            float b = (p[s] + p[s + 1] + p[s + 2]) / 3;
            float c = (p[2 * s] + p[2 * s + 1] + p[2 * s + 2]) / 3;
            out[y * w + x] = (a + b + c) / 3;
        }
}
