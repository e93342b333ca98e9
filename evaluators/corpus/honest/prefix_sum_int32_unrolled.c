/* problem: prefix_sum n=402 dtype=int32; tags: reassociated; shows: four at a time, partial sums of pairs */
void prefix_sum(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{
    int32_t sum = 0;
    int64_t i = 0;
    for (; i < n - n % 4; i += 4) {
        int32_t ab = x[i] + x[i + 1], cd = x[i + 2] + x[i + 3];
        y[i] = sum + x[i];
        y[i + 1] = sum + ab;
        y[i + 2] = sum + ab + x[i + 2];
        y[i + 3] = sum + (ab + cd);
        sum += ab + cd;
    }
    for (; i < n; i++)
        y[i] = sum += x[i];
}
