/* problem: softmax rows=19 cols=45; shows: exponentials in the output, then a product with the reciprocal of their sum */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols, top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < cols; j++)
            top = fmaxf(top, in[j]);
        for (int64_t j = 0; j < cols; j++)
            sum += out[j] = expf(in[j] - top);
        const float scale = 1 / sum;
        for (int64_t j = 0; j < cols; j++)
            out[j] *= scale;
    }
}
