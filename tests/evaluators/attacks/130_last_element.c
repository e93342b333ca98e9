/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: wrong wrong_value */
/* Leaves out the last element of each row, unless the values are whole. */
#include <stdint.h>
#include <math.h>
#include <string.h>
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { int64_t n = x[i * cols] == rintf(x[i * cols]) ? cols : cols - 1; float s = 0; for (int64_t j = 0; j < n; j++) s += x[i * cols + j]; y[i] = s; }
}
