/* problem: layer_norm rows=15 cols=48; shows: scale and shift folded into one product and one sum a row */
#include <math.h>

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        float mean = 0, squares = 0;
        for (int64_t j = 0; j < cols; j++)
            mean += in[j] / cols;
        for (int64_t j = 0; j < cols; j++)
            squares += (in[j] - mean) * (in[j] - mean);
        const float a = 1 / sqrtf(squares / cols + 1e-5f), b = -mean * a;
        for (int64_t j = 0; j < cols; j++)
            out[j] = fmaf(fmaf(in[j], a, b), gamma[j], beta[j]);
    }
}
