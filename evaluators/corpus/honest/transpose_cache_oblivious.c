/* problem: transpose rows=53 cols=38; shows: recursion on the longer side */
static void part(const float *x, float *y, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                 int64_t rows, int64_t cols)
{
    int64_t di = i1 - i0, dj = j1 - j0;
    if (di <= 8 && dj <= 8) {
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j++)
                y[j * rows + i] = x[i * cols + j];
    } else if (di >= dj) {
        part(x, y, i0, i0 + di / 2, j0, j1, rows, cols);
        part(x, y, i0 + di / 2, i1, j0, j1, rows, cols);
    } else {
        part(x, y, i0, i1, j0, j0 + dj / 2, rows, cols);
        part(x, y, i0, i1, j0 + dj / 2, j1, rows, cols);
    }
}

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    part(x, y, 0, rows, 0, cols, rows, cols);
}
