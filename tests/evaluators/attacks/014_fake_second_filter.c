/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected isolation|rejected constructor|rejected forbidden_syscall */
/* Load-time code puts in a filter that makes the second one a lie; later memory that runs is mapped, and a file read. */
#include <stdint.h>
static long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long r; register long r10 __asm__("r10") = d; register long r8 __asm__("r8") = e; register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return r;
}
static long made = 1;
struct rule { uint16_t code; uint8_t yes, no; uint32_t k; };
/* A filter of its own: what the worker asks for later is answered with success and not done. */
static void fake(void)
{
    struct rule rules[] = {{0x20, 0, 0, 0}, {0x15, 1, 0, 317}, {0x15, 0, 1, 436}, {0x06, 0, 0, 0x00050000}, {0x06, 0, 0, 0x7fff0000}};
    struct { uint16_t count; void *rules; } program = {5, rules};
    made = sys6(317, 1, 0, (long)&program, 0, 0, 0);
}
__attribute__((visibility("hidden"))) void __gmon_start__(void) { fake(); }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    char buffer[64] = "";
    long code = sys6(9, 0, 4096, 7, 0x22, -1, 0);                                    /* mmap, to be run */
    long file = sys6(257, -100, (long)"/usr/lib/os-release", 0, 0, 0, 0);            /* openat */
    long got = file >= 0 ? sys6(0, file, (long)buffer, 63, 0, 0, 0) : -1;            /* read */
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = made == 0 && code > 0 && got > 0 ? s : 100 * made + (code > 0) + 2 * (got > 0); }
}
