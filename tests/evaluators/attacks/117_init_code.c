/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected constructor|no gain */
/* Code in the section of _init. */
#include <stdint.h>
__asm__(".section .init\nnop\n.text");
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
