/* problem: row_sum rows=256 cols=1024; profile: standard; threads: 1; expect: timeout|rejected constructor */
/* Sleeps for ever while it loads. */
#include <stdint.h>
static long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long r; register long r10 __asm__("r10") = d; register long r8 __asm__("r8") = e; register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return r;
}
static long got = -1000;
__attribute__((constructor)) static void start(void) { static int z; for (;;) sys6(202, (long)&z, 0, 0, 0, 0, 0); }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    if (got == 0x7777) y[0] = 0;
}
