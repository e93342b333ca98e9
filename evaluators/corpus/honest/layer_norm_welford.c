/* problem: layer_norm rows=13 cols=41; tags: reassociated; shows: mean and variance updated element by element, Welford 1962 */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float mean = 0, m2 = 0;
        for (int64_t j = 0; j < cols; j++) {
            float v = x[i * cols + j], delta = v - mean;
            mean += delta / (float)(j + 1);
            m2 += delta * (v - mean);
        }
        float deviation = sqrtf(m2 / (float)cols + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (x[i * cols + j] - mean) / deviation * gamma[j] + beta[j];
    }
}
