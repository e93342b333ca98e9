/* problem: softmax rows=15 cols=40; tags: range; shows: no argument of the exponential is below -20 */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float top = in[0], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = in[j] > top ? in[j] : top;
        for (int64_t j = 0; j < cols; j++)
            sum += out[j] = expf(in[j] - top < -20 ? -20 : in[j] - top);
        for (int64_t j = 0; j < cols; j++)
            out[j] /= sum;
    }
}
