/* problem: softmax rows=12 cols=50; shows: exp(x - log Σ exp) in double */
#include <math.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        double top = x[i * cols], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            if (x[i * cols + j] > top)
                top = x[i * cols + j];
        for (int64_t j = 0; j < cols; j++)
            sum += exp(x[i * cols + j] - top);
        const double log_sum = top + log(sum);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = exp(x[i * cols + j] - log_sum);
    }
}
