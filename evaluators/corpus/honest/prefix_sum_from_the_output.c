/* problem: prefix_sum n=201; shows: every sum is read back from the output */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    y[0] = x[0];
    for (int64_t i = 1; i < n; i++)
        y[i] = y[i - 1] + x[i];
}
