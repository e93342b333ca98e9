/* problem: conv3x3 h=36 w=33; flags: -fopenmp; threads: 2; tags: openmp; shows: rows dealt to threads, simd in the row */
void conv3x3(const float *restrict image, const float *restrict weights, float *restrict out,
             int64_t h, int64_t w)
{
#pragma omp parallel for
    for (int64_t y = 0; y < h; y++) {
        float *row = out + y * w;
#pragma omp simd
        for (int64_t x = 0; x < w; x++) {
            float sum = 0;
            for (int dy = 0; dy < 3; dy++)
                for (int dx = 0; dx < 3; dx++)
                    sum += weights[dy * 3 + dx] * image[(y + dy) * (w + 2) + x + dx];
            row[x] = sum;
        }
    }
}
