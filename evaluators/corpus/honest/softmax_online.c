/* problem: softmax rows=23 cols=64; shows: greatest element and sum in one pass, Milakov and Gimelshein 2018 */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float top = x[i * cols], sum = 1;
        for (int64_t j = 1; j < cols; j++) {
            float v = x[i * cols + j];
            if (v > top) {
                sum = sum * expf(top - v) + 1;
                top = v;
            } else {
                sum += expf(v - top);
            }
        }
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = expf(x[i * cols + j] - top) / sum;
    }
}
