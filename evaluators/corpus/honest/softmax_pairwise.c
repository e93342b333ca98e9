/* problem: softmax rows=11 cols=130; tags: reassociated; shows: greatest element and sum by recursion on halves */
#include <math.h>

static float greatest(const float *x, int64_t n)
{
    return n == 1 ? *x : fmaxf(greatest(x, n / 2), greatest(x + n / 2, n - n / 2));
}

static float total(const float *x, int64_t n)
{
    return n == 1 ? *x : total(x, n / 2) + total(x + n / 2, n - n / 2);
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float *out = y + i * cols;
        const float top = greatest(x + i * cols, cols);
        for (int64_t j = 0; j < cols; j++)
            out[j] = expf(x[i * cols + j] - top);
        const float sum = total(out, cols);
        for (int64_t j = 0; j < cols; j++)
            out[j] = out[j] / sum;
    }
}
