/* problem: prefix_sum n=500; tags: order; shows: exclusive sums */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        y[i] = sum;
        sum += x[i];
    }
}
