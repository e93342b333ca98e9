/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: no gain|build_error|rejected */
/* A section for the plug-in of the linker, with options. */
#include <stdint.h>
__asm__(".section .gnu.lto_.opts,\"e\"\n.asciz \"'-fplugin=/tmp/x.so' '-o' '/tmp/y'\"\n.text");
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
