/* problem: row_sum rows=33 cols=47; shows: one running pointer, no index */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    const float *const end = x + rows * cols;
    while (x != end) {
        float sum = 0;
        for (const float *stop = x + cols; x != stop;)
            sum += *x++;
        *y++ = sum;
    }
}
