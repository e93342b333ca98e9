/* problem: row_sum rows=6 cols=900; threads: 2; tags: openmp, reassociated; shows: each row summed by all threads with a reduction clause */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
