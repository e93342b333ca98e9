/* problem: prefix_sum n=500 dtype=int32; tags: overflow; shows: the running sum wraps at 16 binary digits */
void prefix_sum(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{
    int16_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum = (int16_t)(sum + x[i]);
        y[i] = sum;
    }
}
