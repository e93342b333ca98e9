/* problem: row_sum rows=64 cols=64; profile: strict; threads: 1; expect: rejected constructor|rejected */
/* Reading the binary takes time that grows with the square of the number of constructors. */
#include <stdint.h>
__attribute__((used)) static void f(void) {}
__asm__(".section .init_array,\"aw\"\n.rept 100000\n.quad f\n.endr\n.text");
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
}
