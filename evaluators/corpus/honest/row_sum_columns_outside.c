/* problem: row_sum rows=40 cols=31; shows: columns in the outer loop, the output holds the running sums (written twice) */
#include <string.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    memset(y, 0, (size_t)rows * sizeof *y);
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[i] += x[i * cols + j];
}
