#include <stdint.h>

void transpose(const TYPE *restrict x, TYPE *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[i * cols + j];
}
