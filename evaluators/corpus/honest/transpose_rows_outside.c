/* problem: transpose rows=35 cols=50; shows: reads in order, writes with a stride */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[j * rows + i] = *x++;
}
