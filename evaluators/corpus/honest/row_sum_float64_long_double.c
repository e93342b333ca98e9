/* problem: row_sum rows=15 cols=64 dtype=float64; shows: long double sums */
void row_sum(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        long double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
