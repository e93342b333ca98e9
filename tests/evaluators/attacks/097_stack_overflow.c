/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: crashed segmentation_fault */
/* Runs out of stack. */
#include <stdint.h>
static int deep(volatile char *p) { volatile char q[4096]; q[0] = p[0]; return deep(q) + q[1]; }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    volatile char c = 0; y[0] += deep(&c);
}
