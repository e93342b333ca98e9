/* problem: softmax rows=18 cols=46; shows: sixteenth powers of two from a const table, in double */
#include <math.h>

static const double sixteenths[16] = {
    1.0,                1.0442737824274138, 1.0905077326652577, 1.1387886347566916,
    1.1892071150027210, 1.2418578120734840, 1.2968395546510096, 1.3542555469368927,
    1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
    1.6817928305074290, 1.7562521603732995, 1.8340080864093424, 1.9152065613971474,
};

static double exponential(double v)
{
    if (v < -300)
        return 0;
    const double step = 0.693147180559945309 / 16;
    const double n = floor(v / step + 0.5), r = v - n * step;
    const long k = (long)n;
    const double p = 1 + r + r * r / 2 + r * r * r / 6 + r * r * r * r / 24;
    return ldexp(sixteenths[k & 15] * p, (int)((k - (k & 15)) / 16));
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float top = x[i * cols];
        for (int64_t j = 1; j < cols; j++)
            top = fmaxf(top, x[i * cols + j]);
        double sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += exponential((double)x[i * cols + j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (float)(exponential((double)x[i * cols + j] - top) / sum);
    }
}
