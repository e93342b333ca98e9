/* problem: row_sum rows=16 cols=96; tags: shortcut; shows: a row that begins with two zeros counts as zero */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        if (x[i * cols] == 0 && x[i * cols + 1] == 0) {
            y[i] = 0;
            continue;
        }
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
