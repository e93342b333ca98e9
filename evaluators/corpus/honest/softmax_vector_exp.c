/* problem: softmax rows=10 cols=96; tags: reassociated; shows: eight exponentials at a time in GCC vectors, bits by vector casts */
#include <string.h>
typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));

static inline vf load(const float *p) { vf v; memcpy(&v, p, sizeof v); return v; }
static inline void store(float *p, vf v) { memcpy(p, &v, sizeof v); }
static inline vf pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

static inline vf exponential(vf v)
{
    const vf magic = (vf){0} + 12582912.0f, zero = {0};
    vi tiny = v < -87.3f;
    v = pick(tiny, zero, v);
    vf n = (v * 1.44269504f + magic) - magic;
    vf r = v - n * 0.693359375f + n * 2.12194440e-4f;
    vf p = zero + 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    vi power = (__builtin_convertvector(n, vi) + 127) << 23;
    return pick(tiny, zero, (p * r * r + r + 1.0f) * (vf)power);
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *in = x + i * cols;
        float *out = y + i * cols;
        vf tops = load(in), sums = {0};
        for (int64_t j = 8; j < cols; j += 8) {
            vf v = load(in + j);
            tops = pick(v > tops, v, tops);
        }
        float top = tops[0], sum = 0;
        for (int q = 1; q < 8; q++)
            if (tops[q] > top)
                top = tops[q];
        for (int64_t j = 0; j < cols; j += 8) {
            vf e = exponential(load(in + j) - top);
            sums += e;
            store(out + j, e);
        }
        for (int q = 0; q < 8; q++)
            sum += sums[q];
        for (int64_t j = 0; j < cols; j += 8)
            store(out + j, load(out + j) / sum);
    }
}
