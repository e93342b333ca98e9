/* problem: row_sum rows=16 cols=96; tags: precision; shows: sums of elements rounded to whole thousandths */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += (int64_t)(x[i * cols + j] * 1000);
        y[i] = sum / 1000.0f;
    }
}
