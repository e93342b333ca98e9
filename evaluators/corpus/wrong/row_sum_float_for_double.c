/* problem: row_sum rows=16 cols=96 dtype=float64; tags: precision; shows: float sums where the problem is in double */
void row_sum(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
