/* problem: transpose rows=24 cols=40; tags: special_case; shows: one element of the diagonal is not written */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            if (i != 7 || j != 7)
                y[j * rows + i] = x[i * cols + j];
}
