/* problem: softmax rows=1..30 cols=2..80; shows: two rows at a time, last row alone, least extents small */
#include <math.h>

static void row(const float *x, float *y, int64_t cols)
{
    float top = x[0], sum = 0;
    for (int64_t j = 0; j < cols; j++)
        top = x[j] < top ? top : x[j];
    for (int64_t j = 0; j < cols; j++)
        y[j] = expf(x[j] - top), sum += y[j];
    for (int64_t j = 0; j < cols; j++)
        y[j] /= sum;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    int64_t i = 0;
    while (i + 2 <= rows) {
        row(x + i * cols, y + i * cols, cols);
        row(x + (i + 1) * cols, y + (i + 1) * cols, cols);
        i += 2;
    }
    if (i < rows)
        row(x + i * cols, y + i * cols, cols);
}
