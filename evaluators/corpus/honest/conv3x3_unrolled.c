/* problem: conv3x3 h=15 w=27; shows: nine terms written out, weights in registers */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3], e = weights[4],
                f = weights[5], g = weights[6], k = weights[7], l = weights[8];
    for (int64_t y = 0; y < h; y++) {
        const float *r0 = image + y * (w + 2), *r1 = r0 + w + 2, *r2 = r1 + w + 2;
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = a * r0[x] + b * r0[x + 1] + c * r0[x + 2] + d * r1[x] +
                             e * r1[x + 1] + f * r1[x + 2] + g * r2[x] + k * r2[x + 1] +
                             l * r2[x + 2];
    }
}
