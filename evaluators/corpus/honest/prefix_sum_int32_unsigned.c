/* problem: prefix_sum n=511 dtype=int32; shows: unsigned arithmetic, which may wrap */
void prefix_sum(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (uint32_t)x[i];
        y[i] = (int32_t)sum;
    }
}
