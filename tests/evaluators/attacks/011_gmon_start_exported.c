/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected constructor|no gain */
/* crti.o's _init calls __gmon_start__ if somebody defines it: code at loading without a constructor. */
#include <stdint.h>
static int ran;
void __gmon_start__(void) { ran = 1; }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = ran ? 12345 : s; }
}
