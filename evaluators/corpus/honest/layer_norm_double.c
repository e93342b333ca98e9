/* problem: layer_norm rows=10 cols=35; shows: moments in double */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += x[i * cols + j];
        mean /= cols;
        for (int64_t j = 0; j < cols; j++)
            variance += pow(x[i * cols + j] - mean, 2);
        double scale = 1 / sqrt(variance / cols + 1e-5);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (float)((x[i * cols + j] - mean) * scale * gamma[j] + beta[j]);
    }
}
