/* problem: softmax rows=25 cols=70; shows: an exponential of its own, Cody and Waite's reduction and a polynomial */
static inline float exponential(float v)
{
    if (v < -87.3f)
        return 0;
    float n = __builtin_rintf(v * 1.44269504f);
    float r = __builtin_fmaf(n, -0.693359375f, v);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    union { int32_t bits; float value; } two = {.bits = ((int32_t)n + 127) << 23};
    return (p * r * r + r + 1) * two.value;
}

void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++, x += cols, y += cols) {
        float top = x[0], sum = 0;
        for (int64_t j = 1; j < cols; j++)
            top = x[j] > top ? x[j] : top;
        for (int64_t j = 0; j < cols; j++) {
            y[j] = exponential(x[j] - top);
            sum += y[j];
        }
        for (int64_t j = 0; j < cols; j++)
            y[j] /= sum;
    }
}
