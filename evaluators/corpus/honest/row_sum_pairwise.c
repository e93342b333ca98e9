/* problem: row_sum rows=9 cols=500; tags: reassociated; shows: pairwise summation by recursion */
static float pairwise(const float *x, int64_t n)
{
    if (n == 1)
        return x[0];
    return pairwise(x, n / 2) + pairwise(x + n / 2, n - n / 2);
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        y[i] = pairwise(x + i * cols, cols);
}
