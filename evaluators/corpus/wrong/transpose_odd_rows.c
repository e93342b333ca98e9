/* problem: transpose rows=16..41 cols=20; tags: special_case; shows: with an odd number of rows the last one is the one before */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[(i == rows - 1 && rows % 2 ? i - 1 : i) * cols + j];
}
