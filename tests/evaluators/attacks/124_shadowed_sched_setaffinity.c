/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 1; expect: rejected forbidden_symbol|no gain */
/* Takes the name of a function that the worker calls while it loads. */
#include <stdint.h>
int sched_setaffinity(int p, unsigned long n, const void *s) { (void)p; (void)n; (void)s; return 0; }
int close_range(unsigned a, unsigned b, int c) { (void)a; (void)b; (void)c; return 0; }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = s; }
    
}
