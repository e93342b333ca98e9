/* problem: prefix_sum n=301; tags: reassociated; shows: loads and sums of the next four elements before the stores of the last ones */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float carry = 0, a = 0, b = 0, c = 0, d = 0;
    int64_t ready = 0, i = 0;
    for (; i + 4 <= n; i += 4) {
        float p = x[i], q = p + x[i + 1], r = x[i + 2], s = r + x[i + 3];
        if (ready) {
            y[i - 4] = a;
            y[i - 3] = b;
            y[i - 2] = c;
            y[i - 1] = d;
        }
        a = carry + p;
        b = carry + q;
        c = carry + (q + r);
        d = carry + (q + s);
        carry = d;
        ready = 1;
    }
    if (ready) {
        y[i - 4] = a;
        y[i - 3] = b;
        y[i - 2] = c;
        y[i - 1] = d;
    }
    for (; i < n; i++)
        y[i] = carry += x[i];
}
