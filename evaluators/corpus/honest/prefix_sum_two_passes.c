/* problem: prefix_sum n=333; tags: reassociated; shows: sums within blocks, then the sum of the blocks before is added */
enum { BLOCK = 32 };

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t b = 0; b < n; b += BLOCK) {
        float sum = 0;
        for (int64_t i = b; i < b + BLOCK && i < n; i++)
            y[i] = sum += x[i];
    }
    float before = 0;
    for (int64_t b = 0; b < n; b += BLOCK) {
        int64_t end = b + BLOCK < n ? b + BLOCK : n;
        for (int64_t i = b; i < end; i++)
            y[i] += before;
        before = y[end - 1];
    }
}
