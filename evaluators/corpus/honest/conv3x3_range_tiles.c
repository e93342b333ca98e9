/* problem: conv3x3 h=1..24 w=1..36; shows: tiles of 4 x 8 with the padded window copied to the stack */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    float window[6][10];
    for (int64_t yo = 0; yo < h; yo += 4)
        for (int64_t xo = 0; xo < w; xo += 8) {
            const int64_t th = MIN(4, h - yo), tw = MIN(8, w - xo);
            for (int64_t r = 0; r < th + 2; r++)
                for (int64_t c = 0; c < tw + 2; c++)
                    window[r][c] = image[(yo + r) * (w + 2) + xo + c];
            for (int64_t r = 0; r < th; r++)
                for (int64_t c = 0; c < tw; c++) {
                    float sum = 0;
                    for (int t = 0; t < 9; t++)
                        sum += window[r + t / 3][c + t % 3] * weights[t];
                    out[(yo + r) * w + xo + c] = sum;
                }
        }
}
