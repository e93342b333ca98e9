/* problem: softmax rows=15 cols=40; tags: unstable; shows: the greatest element of the whole matrix is subtracted */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    float top = x[0];
    for (int64_t e = 1; e < rows * cols; e++)
        top = x[e] > top ? x[e] : top;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += y[i * cols + j] = expf(x[i * cols + j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] /= sum;
    }
}
