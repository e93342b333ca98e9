/* problem: row_sum rows=16 cols=96; tags: order; shows: sums of neighbouring rows are exchanged */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i ^ 1] = sum;
    }
}
