/* problem: softmax rows=16 cols=40; shows: powers of two in double in place of exponentials */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    const double log2e = 1.4426950408889634;
    for (int64_t i = 0; i < rows; i++) {
        float top = x[i * cols];
        double sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = fmaxf(top, x[i * cols + j]);
        for (int64_t j = 0; j < cols; j++)
            sum += exp2((x[i * cols + j] - top) * log2e);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (float)(exp2((x[i * cols + j] - top) * log2e) / sum);
    }
}
