/* problem: softmax rows=21 cols=60; shows: no exponential is taken where it would underflow */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t best = 0;
        for (int64_t j = 1; j < cols; j++)
            if (x[i * cols + j] > x[i * cols + best])
                best = j;
        float sum = 0;
        for (int64_t j = 0; j < cols; j++) {
            float below = x[i * cols + best] - x[i * cols + j];
            float e = 0;
            if (j == best)
                e = 1;
            else if (below < 87.0f)
                e = expf(-below);
            y[i * cols + j] = e;
            sum += e;
        }
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] /= sum;
    }
}
