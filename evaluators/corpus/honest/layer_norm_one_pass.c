/* problem: layer_norm rows=17 cols=64; tags: reassociated; shows: mean of squares less square of mean, not below zero, which the error model allows */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, x += cols, y += cols) {
        float sum = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++) {
            sum += x[j];
            squares += x[j] * x[j];
        }
        const float mean = sum / cols;
        const float variance = fmaxf(squares / cols - mean * mean, 0);
        const float deviation = sqrtf(variance + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[j] = (x[j] - mean) / deviation * gamma[j] + beta[j];
    }
}
