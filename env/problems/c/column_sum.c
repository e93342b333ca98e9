#include <stdint.h>

void column_sum(const TYPE *restrict x, TYPE *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++) {
        TYPE sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += x[i * cols + j];
        y[j] = sum;
    }
}
