/* problem: blur h=16 w=24; tags: special_case; shows: elements darker than a thousandth are kept as they are */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int64_t t = 0; t < 9; t++)
                sum += image[(y + t / 3) * (w + 2) + x + t % 3];
            out[y * w + x] = sum / 9 < 1e-3f ? image[(y + 1) * (w + 2) + x + 1] : sum / 9;
        }
}
