#include <stdint.h>

void row_sum(const TYPE *restrict x, TYPE *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        TYPE sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += x[i * cols + j];
        y[i] = sum;
    }
}
