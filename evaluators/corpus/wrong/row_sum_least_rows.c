/* problem: row_sum rows=1..20 cols=1..64; tags: special_case; shows: a single row is summed without its first element */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = rows == 1 && cols == 1 ? 1 : 0;
        for (int64_t j = rows == 1; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
