/* problem: prefix_sum n=500; tags: stale_state; shows: the carry is static and not cleared */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    static float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
