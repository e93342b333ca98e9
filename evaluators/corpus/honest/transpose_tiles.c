/* problem: transpose rows=45 cols=61; shows: tiles of 16 x 16 with guarded edges */
#define B 16
void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t io = 0; io < rows; io += B)
        for (int64_t jo = 0; jo < cols; jo += B)
            for (int64_t j = jo; j < jo + B && j < cols; j++)
                for (int64_t i = io; i < io + B && i < rows; i++)
                    y[j * rows + i] = x[i * cols + j];
}
