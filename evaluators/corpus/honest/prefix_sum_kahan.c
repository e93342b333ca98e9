/* problem: prefix_sum n=190; shows: a compensated running sum */
void prefix_sum(const float *restrict x, float *restrict y, int64_t n)
{
    float sum = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        float term = x[i] - lost, next = sum + term;
        lost = (next - sum) - term;
        y[i] = sum = next;
    }
}
