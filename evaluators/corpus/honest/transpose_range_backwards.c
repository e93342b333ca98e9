/* problem: transpose rows=2..50 cols=2..50; shows: the output from its last element to its first */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t at = rows * cols - 1; at >= 0; at--)
        y[at] = x[at % rows * cols + at / rows];
}
