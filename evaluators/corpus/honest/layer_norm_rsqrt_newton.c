/* problem: layer_norm rows=16 cols=32; shows: an estimate of the reciprocal root from the bits, four Newton steps */
#include <string.h>

static float reciprocal_root(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = 0x5f3759df - (bits >> 1);
    float r;
    memcpy(&r, &bits, sizeof r);
    for (int step = 0; step < 4; step++)
        r *= 1.5f - 0.5f * v * r * r;
    return r;
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        float mean = 0, variance = 1e-5f;
        for (int64_t j = 0; j < cols; j++)
            mean += x[i * cols + j];
        mean /= cols;
        for (int64_t j = 0; j < cols; j++)
            variance += (x[i * cols + j] - mean) * (x[i * cols + j] - mean) / cols;
        const float scale = reciprocal_root(variance);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (x[i * cols + j] - mean) * (scale * gamma[j]) + beta[j];
    }
}
