/* problem: row_sum rows=64 cols=64; profile: strict; threads: 1; expect: over_limit library_size|rejected|build_error */
/* A library of 240 MiB: what does it cost, and does it stay in the build cache? */
#include <stdint.h>
char big[240 << 20] = {1};
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
}
