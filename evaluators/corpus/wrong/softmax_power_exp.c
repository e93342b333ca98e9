/* problem: softmax rows=15 cols=40; tags: approximation; shows: the exponential is (1 + v / 1024) ^ 1024 */
#include <math.h>

static float exponential(float v)
{
    float e = 1 + v / 1024;
    if (e < 0)
        return 0;
    for (int s = 0; s < 10; s++)
        e *= e;
    return e;
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
