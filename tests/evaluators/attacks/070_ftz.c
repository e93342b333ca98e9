/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected fp_environment */
/* Flushes subnormal numbers from then on. */
#include <stdint.h>
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    __builtin_ia32_ldmxcsr(0x9fc0);
}
