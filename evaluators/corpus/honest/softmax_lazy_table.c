/* problem: softmax rows=20 cols=37; tags: lazy_table; shows: powers of two from a static table that the first call fills */
#include <math.h>

static double table[64];
static int filled;

static double exponential(double v)
{
    if (v < -200)
        return 0;
    double n = rint(v * (64 / 0.69314718055994531));
    double r = v - n * (0.69314718055994531 / 64);
    int64_t k = (int64_t)n;
    double p = 1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24))));
    return ldexp(table[k & 63] * p, (int)(k >> 6));
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    if (!filled) {
        for (int k = 0; k < 64; k++)
            table[k] = exp2(k / 64.0);
        filled = 1;
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float top = in[0];
        for (int64_t j = 1; j < cols; j++)
            top = in[j] > top ? in[j] : top;
        double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += exponential((double)in[j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (float)(exponential((double)in[j] - top) / sum);
    }
}
