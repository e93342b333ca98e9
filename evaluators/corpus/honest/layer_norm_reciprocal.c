/* problem: layer_norm rows=14 cols=50; shows: two passes for the moments, a product with the reciprocal root */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float mean = 0, variance = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += in[j];
        mean /= cols;
        for (int64_t j = 0; j < cols; j++) {
            float off = in[j] - mean;
            variance += off * off;
        }
        const float scale = 1 / sqrtf(variance / cols + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (in[j] - mean) * scale * gamma[j] + beta[j];
    }
}
