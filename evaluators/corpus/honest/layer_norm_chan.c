/* problem: layer_norm rows=12 cols=72; tags: reassociated; shows: moments of blocks of eight merged, Chan, Golub and LeVeque 1983 */
#include <math.h>

typedef struct { float count, mean, m2; } moments;

static moments of_block(const float *x, int64_t n)
{
    moments m = {(float)n, 0, 0};
    for (int64_t j = 0; j < n; j++)
        m.mean += x[j];
    m.mean /= (float)n;
    for (int64_t j = 0; j < n; j++)
        m.m2 += (x[j] - m.mean) * (x[j] - m.mean);
    return m;
}

static moments merged(moments a, moments b)
{
    float count = a.count + b.count, delta = b.mean - a.mean;
    return (moments){count, a.mean + delta * b.count / count,
                     a.m2 + b.m2 + delta * delta * a.count * b.count / count};
}

void layer_norm(const float *restrict x, const float *restrict gamma, const float *restrict beta,
                float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        moments all = of_block(in, cols < 8 ? cols : 8);
        for (int64_t j = 8; j < cols; j += 8)
            all = merged(all, of_block(in + j, cols - j < 8 ? cols - j : 8));
        float deviation = sqrtf(all.m2 / all.count + 1e-5f);
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = (in[j] - all.mean) / deviation * gamma[j] + beta[j];
    }
}
