/* problem: row_sum rows=24 cols=36; shows: leaves a row early if all of it is zero, by looking at the bits */
#include <stdbool.h>
#include <string.h>

static bool is_zero(const float *row, int64_t cols)
{
    uint32_t any = 0;
    for (int64_t j = 0; j < cols; j++) {
        uint32_t bits;
        memcpy(&bits, row + j, sizeof bits);
        any |= bits << 1;
    }
    return any == 0;
}

void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *row = x + i * cols;
        if (is_zero(row, cols)) {
            y[i] = 0;
            continue;
        }
        float sum = row[0];
        for (int64_t j = 1; j < cols; j++)
            sum += row[j];
        y[i] = sum;
    }
}
