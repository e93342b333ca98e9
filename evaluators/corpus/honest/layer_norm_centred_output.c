/* problem: layer_norm rows=20 cols=39; tags: reassociated; shows: the centred row is kept in the output, then scaled in place, sums from the end */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = rows - 1; i >= 0; i--) {
        float *out = y + i * cols, mean = 0, squares = 0;
        for (int64_t j = cols - 1; j >= 0; j--)
            mean += x[i * cols + j];
        mean /= cols;
        for (int64_t j = 0; j < cols; j++)
            out[j] = x[i * cols + j] - mean;
        for (int64_t j = cols - 1; j >= 0; j--)
            squares += out[j] * out[j];
        float deviation = sqrtf(squares / cols + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            out[j] = out[j] / deviation * gamma[j] + beta[j];
    }
}
