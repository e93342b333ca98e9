/* problem: prefix_sum n=300000 dtype=int32; tags: precision; shows: whole numbers summed in float, which rounds beyond 2^24 */
void prefix_sum(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        y[i] = (int32_t)sum;
    }
}
