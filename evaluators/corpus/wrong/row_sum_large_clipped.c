/* problem: row_sum rows=16 cols=96; tags: range; shows: elements are clipped to -100 and 100 */
#include <math.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j++)
            sum += fminf(fmaxf(x[i * cols + j], -100), 100);
        y[i] = sum;
    }
}
