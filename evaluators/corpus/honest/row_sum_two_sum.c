/* problem: row_sum rows=10 cols=128; tags: reassociated; shows: error-free transformations, Knuth's TwoSum, from both ends at once */
static inline void two_sum(float a, float b, float *s, float *e)
{
    *s = a + b;
    float bb = *s - a;
    *e = (a - (*s - bb)) + (b - bb);
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *lo = x + i * cols, *hi = lo + cols - 1;
        float sum = 0, errors = 0, e;
        while (lo < hi) {
            two_sum(sum, *lo++, &sum, &e);
            errors += e;
            two_sum(sum, *hi--, &sum, &e);
            errors += e;
        }
        if (lo == hi)
            sum += *lo;
        y[i] = sum + errors;
    }
}
