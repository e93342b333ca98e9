/* problem: row_sum rows=16 cols=64; profile: strict; threads: 1; expect: wrong unwritten */
/* Does only every other instance of a batch. */
#include <stdint.h>
#include <math.h>
#include <string.h>
static int turn;
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    if (turn++ & 1) return;
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
