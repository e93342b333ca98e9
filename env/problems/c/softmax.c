#include <math.h>
#include <stdint.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float top = x[i * cols];
        for (int64_t j = 1; j < cols; j++)
            if (x[i * cols + j] > top)
                top = x[i * cols + j];
        float sum = 0;
        for (int64_t j = 0; j < cols; j++) {
            y[i * cols + j] = expf(x[i * cols + j] - top);
            sum += y[i * cols + j];
        }
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] /= sum;
    }
}
