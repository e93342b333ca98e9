/* problem: row_sum rows=30 cols=77; flags: -fopenmp-simd; tags: reassociated; shows: a simd reduction, no threads */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = &x[i * cols];
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < cols; j++)
            sum += row[j];
        y[i] = sum;
    }
}
