/* problem: prefix_sum n=145; tags: reassociated; shows: recursion, the output is the only memory */
static void scan(const float *x, float *y, int64_t n)
{
    if (n == 1) {
        y[0] = x[0];
        return;
    }
    int64_t half = n / 2;
    scan(x, y, half);
    scan(x + half, y + half, n - half);
    for (int64_t i = half; i < n; i++)
        y[i] += y[half - 1];
}

void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    scan(x, y, n);
}
