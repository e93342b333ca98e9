/* problem: row_sum rows=16 cols=96; tags: memory; shows: prefetches by a plain load of the row after the last */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    volatile float next;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        next = x[(i + 1) * cols];
        (void)next;
        y[i] = sum;
    }
}
