/* problem: softmax rows=15 cols=40; tags: approximation; shows: the exponential by Schraudolph's bits, some percent off */
#include <math.h>

static float exponential(float v)
{
    union { int32_t bits; float value; } u;
    u.bits = v < -87 ? 0 : (int32_t)(12102203.0f * v) + 1064866805;
    return u.value;
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
            sum += out[j] = exponential(in[j] - top);
        for (int64_t j = 0; j < cols; j++)
            out[j] /= sum;
    }
}
