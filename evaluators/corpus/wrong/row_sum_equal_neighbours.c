/* problem: row_sum rows=16 cols=96; tags: shortcut; shows: an element that equals the one before is left out */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            if (j == 0 || x[i * cols + j] != x[i * cols + j - 1])
                sum += x[i * cols + j];
        y[i] = sum;
    }
}
