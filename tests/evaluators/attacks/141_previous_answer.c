/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: wrong wrong_value */
/* Gives the answer to the previous call. */
#include <stdint.h>
#include <math.h>
#include <string.h>
static float was[1024]; static int have;
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{ if (have++) { memcpy(y, was, rows * 4); return; }
for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; was[i] = y[i] = s; } }
