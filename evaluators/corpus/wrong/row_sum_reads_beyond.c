/* problem: row_sum rows=16 cols=97; tags: memory; shows: pairs of elements, an odd row reads one element of the next, and the last one reads beyond */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j += 2)
            sum += x[i * cols + j] + x[i * cols + j + 1];
        y[i] = sum;
    }
}
