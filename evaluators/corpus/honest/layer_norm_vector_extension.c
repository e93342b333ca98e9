/* problem: layer_norm rows=9 cols=80; tags: reassociated; shows: sums in eight lanes of a GCC vector */
#include <math.h>
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));

static float lanes(v8 v)
{
    float sum = 0;
    for (int q = 0; q < 8; q++)
        sum += v[q];
    return sum;
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const v8 *in = (const v8 *)(x + i * cols), *g = (const v8 *)gamma, *b = (const v8 *)beta;
        v8 *out = (v8 *)(y + i * cols), sum = {0}, squares = {0};
        for (int64_t j = 0; j < cols / 8; j++)
            sum += in[j];
        const float mean = lanes(sum) / cols;
        for (int64_t j = 0; j < cols / 8; j++)
            squares += (in[j] - mean) * (in[j] - mean);
        const float scale = 1 / sqrtf(lanes(squares) / cols + 1e-5f);
        for (int64_t j = 0; j < cols / 8; j++)
            out[j] = (in[j] - mean) * scale * g[j] + b[j];
    }
}
