/* problem: transpose rows=29 cols=35; tags: dropped_work; shows: tiles at the right edge hold what the tile to the left holds */
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = x[i * cols + (j >= cols / 8 * 8 ? j - 8 : j)];
}
