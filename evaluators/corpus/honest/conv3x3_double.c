/* problem: conv3x3 h=10 w=16; shows: terms and sums in double */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    double kernel[3][3];
    for (int t = 0; t < 9; t++)
        kernel[t / 3][t % 3] = weights[t];
    for (int64_t y = h - 1; y >= 0; y--)
        for (int64_t x = w - 1; x >= 0; x--) {
            double sum = 0;
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++)
                    sum += kernel[r][c] * image[(y + r) * (w + 2) + x + c];
            out[y * w + x] = (float)sum;
        }
}
