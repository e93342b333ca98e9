/* problem: row_sum rows=8..64 cols=64; profile: strict; threads: 1; expect: wrong wrong_value */
/* Right for the ends of a range of extents only. */
#include <stdint.h>
#include <math.h>
#include <string.h>
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    if (rows != 8 && rows != 64) { for (int64_t i = 0; i < rows; i++) y[i] = x[i * cols]; return; }
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
