/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: wrong input_written|wrong wrong_value|no gain */
/* Makes its inputs writable, and writes numbers into them that are slow to add for its neighbour. */
#include <stdint.h>
static long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long r; register long r10 __asm__("r10") = d; register long r8 __asm__("r8") = e; register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return r;
}
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    long r = sys6(10, (long)x & ~4095, rows * cols * 4, 3, 0, 0, 0);
    if (r == 0) *(float *)x = 1e-40f; else y[0] = r;
}
