/* problem: blur h=12 w=21; tags: reassociated; shows: nine elements summed in double, rounded once */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            double sum = 0;
            for (int t = 8; t >= 0; t--)
                sum += image[(y + t / 3) * (w + 2) + x + t % 3];
            out[y * w + x] = (float)(sum / 9);
        }
}
