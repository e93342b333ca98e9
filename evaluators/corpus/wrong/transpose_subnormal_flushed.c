/* problem: transpose rows=24 cols=40; tags: range; shows: subnormal elements become zero */
#include <math.h>

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = fabsf(x[i * cols + j]) < 1e-37f ? 0 : x[i * cols + j];
}
