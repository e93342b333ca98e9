/* problem: prefix_sum n=500; tags: precision; shows: the running sum is kept in half precision */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum = half(sum + x[i]);
        y[i] = sum;
    }
}
