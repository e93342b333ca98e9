/* problem: transpose rows=27 cols=29; shows: elements moved as the bits of a union, so that signalling NaNs would survive */
typedef union { float number; uint32_t bits; } word;

void transpose(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            word from = {.number = x[i * cols + j]}, to;
            to.bits = from.bits;
            y[j * rows + i] = to.number;
        }
}
