/* problem: row_sum rows=64 cols=65; flags: -fopenmp; threads: 2; tags: openmp; shows: parallel for over rows with a named thread count */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    int64_t i;
#pragma omp parallel for num_threads(2) private(i)
    for (i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < cols; ++j)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
