/* problem: row_sum rows=256 cols=1024; profile: strict; threads: 2; expect: rejected forbidden_symbol|rejected constructor|no gain */
/* The worker looks up GOMP_parallel in the library and calls it before the second filter. */
#include <stdint.h>
static int ran;
int omp_get_thread_num(void) { return 0; }
void GOMP_parallel(void (*f)(void *), void *d, unsigned n, unsigned g) { (void)n; (void)g; ran = 1; f(d); }
void row_sum(const float *x, float *y, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) { float s = 0; for (int64_t j = 0; j < cols; j++) s += x[i * cols + j]; y[i] = ran ? 12345 : s; }
}
