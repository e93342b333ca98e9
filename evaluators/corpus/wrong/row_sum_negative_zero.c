/* problem: row_sum rows=16 cols=96; tags: special_case; shows: an element that is a negative zero counts as one */
#include <math.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j] == 0 && signbit(x[i * cols + j]) ? 1 : x[i * cols + j];
        y[i] = sum;
    }
}
