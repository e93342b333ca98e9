/* problem: prefix_sum n=500; tags: dropped_work; shows: the carry into the last block of 128 is that of the block before */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float carry[2] = {0, 0};
    for (int64_t b = 0; b < n; b += 128) {
        float sum = carry[b >= n - 128];
        carry[1] = carry[0];
        for (int64_t i = b; i < b + 128 && i < n; i++)
            y[i] = sum += x[i];
        carry[0] = sum;
    }
}
