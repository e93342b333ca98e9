/* problem: layer_norm rows=1..20 cols=1..70; shows: helper functions for sum and squares, a single column is its own mean */
#include <math.h>

static float mean_of(const float *row, int64_t n)
{
    float sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += row[j];
    return sum / n;
}

static float deviation_of(const float *row, float mean, int64_t n)
{
    float squares = 0;
    for (int64_t j = 0; j < n; j++)
        squares += (row[j] - mean) * (row[j] - mean);
    return sqrtf(squares / n + 1e-5f);
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (const float *row = x; row < x + rows * cols; row += cols) {
        float mean = mean_of(row, cols), deviation = deviation_of(row, mean, cols);
        for (int64_t j = 0; j < cols; j++)
            *y++ = (row[j] - mean) / deviation * gamma[j] + beta[j];
    }
}
