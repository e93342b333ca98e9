/* problem: blur h=20 w=37; shows: products with a rounded third, a VLA of a whole stage */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    const float third = 1 / 3.0f;
    float stage[h + 2][w];
    for (int64_t y = 0; y < h + 2; y++)
        for (int64_t x = 0; x < w; x++)
            stage[y][x] = third * (image[y * (w + 2) + x] + image[y * (w + 2) + x + 1] +
                                   image[y * (w + 2) + x + 2]);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = third * (stage[y][x] + stage[y + 1][x] + stage[y + 2][x]);
}
