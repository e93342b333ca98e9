/* problem: prefix_sum n=257; shows: the running sum is a double */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    double sum = 0;
    while (n-- > 0)
        *y++ = (float)(sum += *x++);
}
