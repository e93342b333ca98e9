/* problem: row_sum rows=17 cols=301; shows: compensated summation, Kahan 1965 */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float s = 0, c = 0;
        for (int64_t j = 0; j < cols; j++) {
            float d = x[i * cols + j] - c, t = s + d;
            c = (t - s) - d;
            s = t;
        }
        y[i] = s;
    }
}
