/* problem: row_sum rows=64 cols=64; profile: strict; threads: 1; expect: no gain|rejected|build_error */
/* Twenty thousand sections. */
#include <stdint.h>
__asm__(".altmacro\n.macro one n\n.section .s\\n,\"a\"\n.quad \\n\n.endm\n.set i,0\n.rept 20000\none %i\n.set i,i+1\n.endr\n.text");
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
}
