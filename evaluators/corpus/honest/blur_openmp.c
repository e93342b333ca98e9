/* problem: blur h=44 w=40; flags: -fopenmp; threads: 2; tags: openmp; shows: bands of rows, each thread with a stage of its own */
void blur(const float *restrict image, float *restrict out, int64_t h, int64_t w)
{
#pragma omp parallel for schedule(static, 4)
    for (int64_t y = 0; y < h; y++) {
        float mid[3][KW_W];
        for (int r = 0; r < 3; r++)
            for (int64_t x = 0; x < w; x++) {
                const float *in = &image[(y + r) * (w + 2) + x];
                mid[r][x] = (in[0] + in[1] + in[2]) / 3;
            }
        for (int64_t x = 0; x < w; x++)
            out[y * w + x] = (mid[0][x] + mid[1][x] + mid[2][x]) / 3;
    }
}
