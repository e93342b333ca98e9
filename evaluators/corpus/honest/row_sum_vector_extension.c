/* problem: row_sum rows=14 cols=100; tags: reassociated; shows: a 16-lane GCC vector, lanes added at the end */
typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        v16 lanes = {0};
        int64_t j = 0;
        for (; j + 16 <= cols; j += 16)
            lanes += *(const v16 *)(row + j);
        float sum = 0;
        for (int q = 0; q < 16; q++)
            sum += lanes[q];
        while (j < cols)
            sum += row[j++];
        y[i] = sum;
    }
}
