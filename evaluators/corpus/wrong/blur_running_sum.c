/* problem: blur h=8 w=700; tags: unstable; shows: sums along a row by adding what comes and taking away what goes */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    float stage[KW_H + 2][KW_W];
    for (int64_t y = 0; y < h + 2; y++) {
        const float *in = image + y * (w + 2);
        float sum = in[0] + in[1] + in[2];
        stage[y][0] = sum / 3;
        for (int64_t x = 1; x < w; x++) {
            sum += in[x + 2] - in[x - 1];
            stage[y][x] = sum / 3;
        }
    }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = (stage[y][x] + stage[y + 1][x] + stage[y + 2][x]) / 3;
}
