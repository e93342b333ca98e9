/* problem: transpose rows=24 cols=40; tags: precision; shows: elements go through half precision */
static float half(float v)
{
    volatile float big = v * 8193.0f, rest = big - v;
    return big - rest;
}

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            y[j * rows + i] = half(x[i * cols + j]);
}
