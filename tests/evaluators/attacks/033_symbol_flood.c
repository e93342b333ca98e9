/* problem: row_sum rows=64 cols=64; profile: strict; threads: 1; expect: no gain|rejected|build_error */
/* Many exported symbols. */
#include <stdint.h>
__asm__(".altmacro\n.macro one n\n.globl a_long_symbol_name_\\n\na_long_symbol_name_\\n:\n.endm\n.text\n.set i,0\n.rept 300000\none %i\n.set i,i+1\n.endr\n");
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
}
