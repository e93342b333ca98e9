/* problem: transpose rows=24 cols=40 dtype=float64; tags: precision; shows: elements go through float */
void transpose(const double *restrict x, double *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = (float)x[i * cols + j];
}
