/* problem: row_sum rows=16 cols=96; tags: shortcut; shows: neighbours of opposite sign are taken to cancel if they agree to a thousandth */
#include <math.h>

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        float sum = 0;
        for (int64_t j = 0; j < cols; j += 2) {
            float pair = row[j] + row[j + 1];
            sum += fabsf(pair) < fabsf(row[j]) / 100 ? 0 : pair;
        }
        y[i] = sum;
    }
}
