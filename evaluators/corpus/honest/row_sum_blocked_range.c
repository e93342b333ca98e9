/* problem: row_sum rows=1..40 cols=1..300; tags: reassociated; shows: blocks of 32 with a stack of partial sums, least extents are one */
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float blocks[(cols + 31) / 32];
        int64_t count = 0;
        for (int64_t jo = 0; jo < cols; jo += 32) {
            float sum = 0;
            for (int64_t j = jo; j < jo + 32 && j < cols; j++)
                sum += x[i * cols + j];
            blocks[count++] = sum;
        }
        float total = 0;
        while (count)
            total += blocks[--count];
        y[i] = total;
    }
}
