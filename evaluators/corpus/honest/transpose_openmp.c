/* problem: transpose rows=60 cols=58; flags: -fopenmp; threads: 2; tags: openmp; shows: columns dealt to threads */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
#pragma omp parallel for schedule(guided)
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[i * cols + j];
}
