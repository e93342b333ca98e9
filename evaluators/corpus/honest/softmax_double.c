/* problem: softmax rows=14 cols=33; shows: exp in double, kept in a scratch row */
#include <math.h>
#include <stdlib.h>

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    double *e = malloc((size_t)cols * sizeof *e);
    if (!e)
        abort();
    for (int64_t i = 0; i < rows; i++) {
        double top = x[i * cols], sum = 0;
        for (int64_t j = 0; j < cols; j++)
            top = fmax(top, x[i * cols + j]);
        for (int64_t j = 0; j < cols; j++)
            sum += e[j] = exp(x[i * cols + j] - top);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = e[j] / sum;
    }
    free(e);
}
