/* problem: transpose rows=24 cols=24; tags: order; shows: a square matrix is copied */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[j * cols + i];
}
